package issuer

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/big"
)

// signingKey is an RSA key and the kid that it is published under.
type signingKey struct {
	id      string
	private *rsa.PrivateKey
}

// keySet is a JWK Set (RFC 7517 section 5).
type keySet struct {
	Keys []publicKey `json:"keys"`
}

// publicKey is an RSA key as a JWK (RFC 7518 section 6.3.1).
type publicKey struct {
	KeyType   string `json:"kty"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	ID        string `json:"kid"`
	Modulus   string `json:"n"`
	Exponent  string `json:"e"`
}

func (k signingKey) public() publicKey {
	return publicKey{
		KeyType: "RSA", Use: "sig", Algorithm: "RS256", ID: k.id,
		Modulus:  encode(k.private.N.Bytes()),
		Exponent: encode(big.NewInt(int64(k.private.E)).Bytes()),
	}
}

// sign makes a compact JWS (RFC 7515 section 7.1) with RS256. It shares no code with the verifier in pkg/auth, so that each
// is a check of the other.
func (k signingKey) sign(header, claims []byte) (string, error) {
	signed := encode(header) + "." + encode(claims)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(nil, k.private, crypto.SHA256, digest[:])
	if err != nil {
		return "", fmt.Errorf("issuer: signing: %w", err)
	}
	return signed + "." + encode(signature), nil
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
