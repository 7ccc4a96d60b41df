// Package issuer is for signing in without Cognito: a stand-in for a user pool, for the local stack and for tests. Its tokens
// are real, signed with RS256 and shaped like Cognito's, and its keys are published where a pool publishes them.
//
// It hands a token to whoever may call Mint and asks for no password. It must never be reachable from anywhere that matters.
package issuer

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json/v2"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Config says where the issuer is served.
type Config struct {
	URL string           // the iss of its tokens, and the base of its well-known addresses; no slash at the end
	Now func() time.Time // nil: time.Now
}

// Issuer mints tokens and serves the keys that verify them. It is safe for concurrent use.
type Issuer struct {
	url string
	now func() time.Time
	mux *http.ServeMux

	mu   sync.Mutex
	keys []signingKey // the first one signs; all are published
}

// New makes an issuer with a fresh RSA key of 2048 bits. The key is never written anywhere: its tokens are worth nothing once
// the process has ended.
func New(config Config) (*Issuer, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	i := &Issuer{url: config.URL, now: config.Now, mux: http.NewServeMux()}
	i.mux.HandleFunc("GET /.well-known/jwks.json", i.serveKeys)
	i.mux.HandleFunc("GET /.well-known/openid-configuration", i.serveConfiguration)
	if err := i.Rotate(); err != nil {
		return nil, err
	}
	return i, nil
}

// Rotate makes a fresh key, which signs from now on. The key before it stays published, so that its tokens go on working;
// the one before that is withdrawn.
func (i *Issuer) Rotate() error {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("issuer: making a key: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	fresh := signingKey{id: rand.Text(), private: private}
	i.keys = append([]signingKey{fresh}, i.keys[:min(1, len(i.keys))]...)
	return nil
}

// ServeHTTP serves the key set and the discovery document (OpenID Connect Discovery 1.0, section 4).
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) { i.mux.ServeHTTP(w, r) }

func (i *Issuer) serveKeys(w http.ResponseWriter, _ *http.Request) {
	set := keySet{Keys: []publicKey{}}
	i.mu.Lock()
	for _, key := range i.keys {
		set.Keys = append(set.Keys, key.public())
	}
	i.mu.Unlock()
	serveJSON(w, set)
}

func (i *Issuer) serveConfiguration(w http.ResponseWriter, _ *http.Request) {
	serveJSON(w, map[string]any{
		"issuer":                                i.url,
		"jwks_uri":                              i.url + "/.well-known/jwks.json",
		"response_types_supported":              []string{"code", "token"},
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256"},
	})
}

// serveJSON is given values that always have a JSON form. A reader that went away is its own business.
func serveJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.MarshalWrite(w, v, json.Deterministic(true))
}
