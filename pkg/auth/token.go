package auth

import (
	"encoding/base64"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	maxToken = 8 << 10 // bytes of a token that are looked at, at most; Cognito's are about one KiB
	maxKeyID = 256     // bytes of a kid

	maxSubject = 255

	leeway   = 30 * time.Second // how far the pool's clock may be from ours
	lastTime = 253402300799     // the last second of the year 9999: later "times" are somebody's overflow
)

// token is an access token taken apart. Nothing in it may be believed before its signature was verified.
type token struct {
	keyID     string
	claims    object
	signed    string // the text that the signature is over
	signature []byte
}

// bearer finds the request's one token (RFC 6750 section 2.1). Tokens in the query or in a form are not looked for: they end
// up in logs.
func bearer(header http.Header) (string, error) {
	values := header.Values("Authorization")
	switch len(values) {
	case 0:
		return "", unauthenticated("there is no Authorization header")
	case 1:
	default:
		return "", unauthenticated("there is more than one Authorization header")
	}
	scheme, raw, _ := strings.Cut(values[0], " ")
	if scheme != "Bearer" { // as RFC 6750 writes it; no client of the suite needs another spelling
		return "", unauthenticated("the Authorization scheme is not Bearer")
	}
	raw = strings.TrimLeft(raw, " ")
	switch {
	case raw == "":
		return "", unauthenticated("the Authorization header has no token")
	case len(raw) > maxToken:
		return "", unauthenticated("the token is longer than 8 KiB")
	case strings.ContainsAny(raw, " \t\r\n,"): // base64 decoding would skip line breaks
		return "", unauthenticated("the Authorization header holds more than one token")
	}
	return raw, nil
}

// parse takes a compact JWS (RFC 7515 section 7.1) apart. It is strict where JWT libraries are lenient: bits that no encoder
// sets, members named twice (which of them would count?) and broken UTF-8 are refused.
func parse(raw string) (token, error) {
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return token{}, unauthenticated("the token is not three parts joined by dots")
	}
	header, err := decodeObject("header", parts[0])
	if err != nil {
		return token{}, err
	}
	claims, err := decodeObject("payload", parts[1])
	if err != nil {
		return token{}, err
	}
	signature, err := decodePart("signature", parts[2])
	if err != nil {
		return token{}, err
	}
	keyID, err := header.keyID()
	if err != nil {
		return token{}, err
	}
	signed := raw[:len(parts[0])+1+len(parts[1])]
	return token{keyID: keyID, claims: claims, signed: signed, signature: signature}, nil
}

func decodePart(name, part string) ([]byte, error) {
	text, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil {
		return nil, unauthenticated("the token's %s is not base64url", name)
	}
	return text, nil
}

// object is a JSON object whose members have not been looked at yet.
type object map[string]jsontext.Value

func decodeObject(name, part string) (object, error) {
	text, err := decodePart(name, part)
	if err != nil {
		return nil, err
	}
	var o object
	err = json.Unmarshal(text, &o)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return nil, unauthenticated("the token's %s names a member twice", name)
	case err != nil || o == nil: // nil: the text was null
		return nil, unauthenticated("the token's %s is not a JSON object", name)
	}
	return o, nil
}

// keyID reads a header: which key of the pool signed the token. A header that wants to choose the algorithm or to bring its
// own key is refused before any key is looked up.
func (o object) keyID() (string, error) {
	if alg, err := o.text("alg"); err != nil || alg != "RS256" {
		return "", unauthenticated("the token's alg is not RS256")
	}
	for _, name := range []string{"jku", "jwk", "x5u", "x5c", "crit"} {
		if _, there := o[name]; there {
			return "", unauthenticated("the token's header has a %s, which is not accepted", name)
		}
	}
	keyID, err := o.text("kid")
	if err != nil {
		return "", err
	}
	if len(keyID) > maxKeyID {
		return "", unauthenticated("the token's kid is longer than 256 bytes")
	}
	return keyID, nil
}

// text gives a member that has to be a string and not empty.
func (o object) text(name string) (string, error) {
	value, there := o[name]
	if !there {
		return "", unauthenticated("the token has no %s", name)
	}
	var s string
	if value.Kind() != jsontext.KindString || json.Unmarshal(value, &s) != nil {
		return "", unauthenticated("the token's %s is not a string", name)
	}
	if s == "" {
		return "", unauthenticated("the token's %s is empty", name)
	}
	return s, nil
}

// exactly refuses a member that is not the one text it has to be.
func (o object) exactly(name, want, otherwise string) error {
	have, err := o.text(name)
	if err == nil && have != want {
		err = &UnauthenticatedError{Reason: otherwise}
	}
	return err
}

// subject gives the sub. It is stored in audit columns of 255 characters and shown in logs.
func (o object) subject() (string, error) {
	subject, err := o.text("sub")
	if err != nil {
		return "", err
	}
	if len(subject) > maxSubject {
		return "", unauthenticated("the token's sub is longer than 255 characters")
	}
	if strings.ContainsFunc(subject, func(c rune) bool { return c < ' ' || c > '~' }) {
		return "", unauthenticated("the token's sub is not printable ASCII")
	}
	return subject, nil
}

// instant gives a member that is a NumericDate (RFC 7519 section 2), and whether it is there at all.
func (o object) instant(name string) (time.Time, bool, error) {
	value, there := o[name]
	if !there {
		return time.Time{}, false, nil
	}
	if value.Kind() != jsontext.KindNumber {
		return time.Time{}, false, unauthenticated("the token's %s is not a number", name)
	}
	var seconds float64
	if json.Unmarshal(value, &seconds) != nil || seconds < 0 || seconds > lastTime {
		return time.Time{}, false, unauthenticated("the token's %s is not a time", name)
	}
	whole, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil { // a user pool writes whole seconds
		return time.Time{}, false, unauthenticated("the token's %s is not a whole number of seconds", name)
	}
	return time.Unix(whole, 0), true, nil
}

// validUntil gives the moment at which the token stops being accepted, leeway included, if it is accepted now.
func (o object) validUntil(now time.Time) (time.Time, error) {
	expiry, there, err := o.instant("exp")
	if err != nil {
		return time.Time{}, err
	}
	if !there {
		return time.Time{}, unauthenticated("the token has no exp")
	}
	until := expiry.Add(leeway)
	if !now.Before(until) {
		return time.Time{}, unauthenticated("the token has expired")
	}
	for _, name := range []string{"nbf", "iat"} {
		start, there, err := o.instant(name)
		if err != nil {
			return time.Time{}, err
		}
		if there && now.Before(start.Add(-leeway)) {
			return time.Time{}, unauthenticated("the token's %s is in the future", name)
		}
	}
	return until, nil
}
