package issuer

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/json/v2"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Forgery is something in the place of an access token that must let nobody in.
type Forgery struct {
	Name          string
	Authorization []string // the values of the header field, one for each time it stands there
	Query         string   // the query string, if something stands there
	Reason        string   // part of what the caller is told
}

// Sendable reports whether HTTP carries the header as it is: blanks around a value are lost on the way, a line break ends it, and
// servers bound how long it may be.
func (f Forgery) Sendable() bool {
	return !slices.ContainsFunc(f.Authorization, func(value string) bool {
		return value != strings.TrimSpace(value) || strings.ContainsAny(value, "\r\n\x00") || len(value) > 12<<10
	})
}

// Forgeries makes the whole corpus of tokens that have to be refused although they are close to one of c's, which is to be let in.
// Some are properly signed and say something wrong; others say what is right and are not properly signed.
func (i *Issuer) Forgeries(c Claims) ([]Forgery, error) {
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("issuer: making a stranger's key: %w", err)
	}
	i.mu.Lock()
	f := &forger{url: i.url, now: i.now().Unix(), person: i.members(c), key: i.keys[0]}
	i.mu.Unlock()
	f.stranger = signingKey{id: f.key.id, private: stranger}
	f.good = f.token(nil)
	all := slices.Concat(f.fields(), f.shapes(), f.algorithms(), f.keys(), f.times(), f.parties(), f.subjects(), f.organizations())
	if f.err != nil {
		return nil, f.err
	}
	return all, nil
}

// forger makes the tokens of one person, each with something changed.
type forger struct {
	url      string
	now      int64
	person   members
	good     string
	key      signingKey // the pool's
	stranger signingKey // under the pool's kid
	err      error      // the first; nothing that was made since counts
}

// members is a JSON object; a nil value takes a member away.
type members = map[string]any

func (f *forger) header(changes members) string {
	return f.text(members{"alg": "RS256", "kid": f.key.id}, changes)
}

func (f *forger) claims(changes members) string { return f.text(f.person, changes) }

func (f *forger) text(base, changes members) string {
	object := maps.Clone(base)
	maps.Copy(object, changes)
	maps.DeleteFunc(object, func(_ string, value any) bool { return value == nil })
	text, err := json.Marshal(object, json.Deterministic(true))
	f.note(err)
	return string(text)
}

// token has changed claims and headed a changed header; both are properly signed.
func (f *forger) token(changes members) string  { return f.raw(f.header(nil), f.claims(changes)) }
func (f *forger) headed(changes members) string { return f.raw(f.header(changes), f.claims(nil)) }

// raw signs any text at all.
func (f *forger) raw(header, claims string) string { return f.by(f.key, header, claims) }

func (f *forger) by(key signingKey, header, claims string) string {
	token, err := key.sign([]byte(header), []byte(claims))
	f.note(err)
	return token
}

// unsigned has nothing where the signature should be.
func (f *forger) unsigned(header string) string {
	return encode([]byte(header)) + "." + encode([]byte(f.claims(nil))) + "."
}

// hashed is signed with the pool's own key, over another hash than RS256's.
func (f *forger) hashed(alg string) string {
	signed := encode([]byte(f.header(members{"alg": alg}))) + "." + encode([]byte(f.claims(nil)))
	sum := sha512.Sum512([]byte(signed))
	signature, err := rsa.SignPKCS1v15(nil, f.key.private, crypto.SHA512, sum[:])
	f.note(err)
	return signed + "." + encode(signature)
}

// padded is signed with the pool's own key and hash in the other padding, PSS.
func (f *forger) padded(alg string) string {
	signed := encode([]byte(f.header(members{"alg": alg}))) + "." + encode([]byte(f.claims(nil)))
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPSS(rand.Reader, f.key.private, crypto.SHA256, sum[:], nil)
	f.note(err)
	return signed + "." + encode(signature)
}

// confused is the classic: what the verifier knows of the pool's key, which is public, taken as a secret.
func (f *forger) confused(alg string, secret []byte) string {
	signed := encode([]byte(f.header(members{"alg": alg}))) + "." + encode([]byte(f.claims(nil)))
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(signed))
	return signed + "." + encode(mac.Sum(nil))
}

// publicPEM is how a verifier's library is likely to be handed the key.
func (f *forger) publicPEM() []byte {
	der, err := x509.MarshalPKIXPublicKey(&f.key.private.PublicKey)
	f.note(err)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func (f *forger) note(err error) {
	if f.err == nil && err != nil {
		f.err = fmt.Errorf("issuer: forging: %w", err)
	}
}

// bearer is a Forgery of one token in its proper place.
func bearer(name, token, reason string) Forgery {
	return Forgery{Name: name, Authorization: []string{"Bearer " + token}, Reason: reason}
}
