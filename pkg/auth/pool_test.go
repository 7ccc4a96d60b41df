package auth

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json/v2"
	"errors"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
)

const (
	poolURL = "https://cognito-idp.ap-northeast-1.amazonaws.com/ap-northeast-1_Example"
	subject = "1f6a9d3e-7b1c-4c55-9a59-0c3c8f6f3a10"
)

// Making RSA keys is slow, so the tests share them.
var (
	firstKey  = sync.OnceValue(func() *rsa.PrivateKey { return newKey(2048) })
	secondKey = sync.OnceValue(func() *rsa.PrivateKey { return newKey(2048) })
	weakKey   = sync.OnceValue(func() *rsa.PrivateKey { return newKey(1024) })
)

func newKey(bits int) *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return key
}

// pool is a user pool without a network: it is the transport of the client that fetches its keys.
type pool struct {
	mu      sync.Mutex
	set     map[string]*rsa.PrivateKey
	answer  func() (int, string) // instead of the key set, while not nil
	down    bool
	fetches int
	gate    chan struct{} // while not nil, a fetch waits until it is closed or its context ends
	clock   time.Time
}

func newPool() *pool {
	return &pool{
		set:   map[string]*rsa.PrivateKey{"first": firstKey()},
		clock: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC),
	}
}

func (p *pool) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *pool) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clock
}

func (p *pool) pass(d time.Duration) { p.change(func() { p.clock = p.clock.Add(d) }) }

func (p *pool) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetches
}

func (p *pool) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	p.fetches++
	gate := p.gate
	p.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return nil, errors.New("connection refused")
	}
	status, body := http.StatusOK, keySet(p.set)
	if p.answer != nil {
		status, body = p.answer()
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewBufferString(body)), Request: r}, nil
}

func keySet(set map[string]*rsa.PrivateKey) string {
	keys := []any{}
	for id, key := range set {
		keys = append(keys, jwk(id, key))
	}
	return text(map[string]any{"keys": keys})
}

func jwk(id string, key *rsa.PrivateKey) map[string]any {
	return map[string]any{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": id,
		"n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
	}
}

func (p *pool) config() TokensConfig {
	return TokensConfig{
		Issuer:                poolURL,
		Clients:               map[string]lifecycle.Surface{"plugin-client": lifecycle.Plugin, "api-client": lifecycle.API},
		OrganizationClaim:     "custom:organization_id",
		DefaultOrganizationID: 1,
		HTTPClient:            &http.Client{Transport: p},
		Now:                   p.now,
	}
}

func (p *pool) tokens(t *testing.T) *Tokens {
	t.Helper()
	tokens, err := NewTokens(t.Context(), p.config())
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// members is a JSON object under construction; a nil value takes a member away.
type members map[string]any

func (p *pool) header(changes members) string {
	return changed(members{"alg": "RS256", "kid": "first"}, changes)
}

func (p *pool) claims(changes members) string {
	now := p.now().Unix()
	return changed(members{
		"iss": poolURL, "sub": subject, "client_id": "plugin-client", "token_use": "access",
		"iat": now - 60, "auth_time": now - 60, "exp": now + 3600,
		"scope": "aws.cognito.signin.user.admin", "jti": "8d3e", "username": subject,
	}, changes)
}

func changed(base, changes members) string {
	maps.Copy(base, changes)
	maps.DeleteFunc(base, func(_ string, value any) bool { return value == nil })
	return text(base)
}

// token is an access token with changed claims, properly signed.
func (p *pool) token(changes members) string {
	return sign256(firstKey(), p.header(nil), p.claims(changes))
}

// headed is an access token with a changed header, properly signed.
func (p *pool) headed(changes members) string {
	return sign256(firstKey(), p.header(changes), p.claims(nil))
}

// sign256 is written apart from the package and its library, so that the two sides check each other.
func sign256(key *rsa.PrivateKey, header, claims string) string {
	signed := encode([]byte(header)) + "." + encode([]byte(claims))
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return signed + "." + encode(signature)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func text(v any) string {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return string(b)
}

func request(authorization ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/v1/projects/1/wf2des", nil)
	for _, value := range authorization {
		r.Header.Add("Authorization", value)
	}
	return r
}

func bearing(token string) *http.Request { return request("Bearer " + token) }

// mustRefuse checks that err is an *UnauthenticatedError, and gives its reason.
func mustRefuse(t *testing.T, err error) string {
	t.Helper()
	refusal, ok := errors.AsType[*UnauthenticatedError](err)
	if !ok {
		t.Fatalf("got %v, want an *UnauthenticatedError", err)
	}
	return refusal.Reason
}
