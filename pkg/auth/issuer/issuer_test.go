package issuer_test

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/auth/issuer"
	"framerun.dev/pkg/lifecycle"
)

// clock is shared by the issuer and the verifier.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// serve runs an issuer on a free port of the loopback interface.
func serve(t *testing.T) (*issuer.Issuer, string, *clock) {
	t.Helper()
	listener := listen(t)
	url := "http://" + listener.Addr().String()
	c := &clock{now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	i, err := issuer.New(issuer.Config{URL: url, Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: i}}
	server.Start()
	t.Cleanup(server.Close)
	return i, url, c
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	var err error
	for range 50 {
		var listener net.Listener
		listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000)))
		if err == nil {
			return listener
		}
	}
	t.Fatalf("no free port: %v", err)
	return nil
}

// verifier is pkg/auth set up as a service sets it up.
func verifier(t *testing.T, url string, c *clock) *auth.Tokens {
	t.Helper()
	tokens, err := auth.NewTokens(t.Context(), auth.TokensConfig{
		Issuer:                url,
		Clients:               map[string]lifecycle.Surface{"plugin-client": lifecycle.Plugin, "api-client": lifecycle.API},
		OrganizationClaim:     issuer.OrganizationClaim,
		DefaultOrganizationID: 1,
		Now:                   c.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func mint(t *testing.T, i *issuer.Issuer, claims issuer.Claims) *http.Request {
	t.Helper()
	token, err := i.Mint(claims)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func TestTokensVerify(t *testing.T) {
	i, url, c := serve(t)
	tokens := verifier(t, url, c)
	for name, test := range map[string]struct {
		claims issuer.Claims
		want   auth.Person
	}{
		"plugin": {issuer.Claims{Subject: "designer", ClientID: "plugin-client"},
			auth.Person{Subject: "designer", ClientID: "plugin-client", Surface: lifecycle.Plugin, OrganizationID: 1}},
		"api": {issuer.Claims{Subject: "script", ClientID: "api-client", Lifetime: time.Minute},
			auth.Person{Subject: "script", ClientID: "api-client", Surface: lifecycle.API, OrganizationID: 1}},
		"another organization": {issuer.Claims{Subject: "guest", ClientID: "plugin-client", OrganizationID: 2},
			auth.Person{Subject: "guest", ClientID: "plugin-client", Surface: lifecycle.Plugin, OrganizationID: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tokens.Person(mint(t, i, test.claims))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTokensToBeRefused(t *testing.T) {
	i, url, c := serve(t)
	stranger, err := issuer.New(issuer.Config{URL: url, Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	tokens := verifier(t, url, c)
	for name, test := range map[string]struct {
		by     *issuer.Issuer
		claims issuer.Claims
		reason string
	}{
		"id token":       {i, issuer.Claims{Subject: "s", ClientID: "plugin-client", TokenUse: "id"}, "not an access token"},
		"another client": {i, issuer.Claims{Subject: "s", ClientID: "elsewhere"}, "client_id"},
		"nobody":         {i, issuer.Claims{ClientID: "plugin-client"}, "sub is empty"},
		"expired":        {i, issuer.Claims{Subject: "s", ClientID: "plugin-client", Lifetime: -time.Minute}, "expired"},
		"another issuer": {stranger, issuer.Claims{Subject: "s", ClientID: "plugin-client"}, "not a key of the user pool"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tokens.Person(mint(t, test.by, test.claims))
			refusal, ok := errors.AsType[*auth.UnauthenticatedError](err)
			if !ok || !strings.Contains(refusal.Reason, test.reason) {
				t.Errorf("got %v, want it refused for %q", err, test.reason)
			}
		})
	}
}

func TestLifetimeIsAnHourUnlessSaid(t *testing.T) {
	i, url, c := serve(t)
	tokens := verifier(t, url, c)
	r := mint(t, i, issuer.Claims{Subject: "s", ClientID: "plugin-client"})
	c.pass(time.Hour)
	if _, err := tokens.Person(r); err != nil {
		t.Errorf("after an hour, within the leeway: %v", err)
	}
	c.pass(time.Minute)
	if _, err := tokens.Person(r); err == nil {
		t.Error("still accepted a minute later")
	}
}

func TestRotation(t *testing.T) {
	i, url, c := serve(t)
	claims := issuer.Claims{Subject: "s", ClientID: "plugin-client", Lifetime: 24 * time.Hour}
	first := mint(t, i, claims)
	rotate := func() {
		if err := i.Rotate(); err != nil {
			t.Fatal(err)
		}
		c.pass(5 * time.Minute) // as often as the verifier looks for an unknown key
	}
	tokens := verifier(t, url, c)
	if _, err := tokens.Person(first); err != nil {
		t.Fatal(err)
	}
	rotate()
	second := mint(t, i, claims)
	for _, r := range []*http.Request{second, first} {
		if _, err := tokens.Person(r); err != nil {
			t.Errorf("after one rotation: %v", err)
		}
	}
	rotate()
	if _, err := tokens.Person(mint(t, i, claims)); err != nil {
		t.Errorf("after two rotations: %v", err)
	}
	if _, err := tokens.Person(second); err != nil {
		t.Errorf("the key before is still published: %v", err)
	}
	if _, err := tokens.Person(first); err == nil {
		t.Error("the withdrawn key is still trusted")
	}
}

func TestDiscovery(t *testing.T) {
	_, url, _ := serve(t)
	var found struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"`
	}
	response := get(t, url+"/.well-known/openid-configuration")
	if err := json.UnmarshalRead(response.Body, &found); err != nil {
		t.Fatal(err)
	}
	if found.Issuer != url {
		t.Errorf("issuer %q, want %q", found.Issuer, url)
	}
	var set struct {
		Keys []map[string]string `json:"keys"`
	}
	response = get(t, found.JWKSURI)
	if err := json.UnmarshalRead(response.Body, &set); err != nil {
		t.Fatal(err)
	}
	if got := response.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
	for _, key := range set.Keys {
		for _, secret := range []string{"d", "p", "q", "dp", "dq", "qi"} {
			if _, there := key[secret]; there {
				t.Errorf("the private member %q is published", secret)
			}
		}
	}
	if len(set.Keys) != 1 {
		t.Errorf("%d keys, want 1 before any rotation", len(set.Keys))
	}
	if got := get(t, url+"/token").StatusCode; got != http.StatusNotFound {
		t.Errorf("GET /token: %d, want 404: nobody can ask for a token from outside", got)
	}
}

func get(t *testing.T, url string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}
