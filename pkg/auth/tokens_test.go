package auth

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/pkg/auth/issuer"
	"framerun.dev/pkg/lifecycle"
)

func TestGoodTokens(t *testing.T) {
	p := newPool()
	tokens := p.tokens(t)
	now := p.now().Unix()
	person := Person{Subject: subject, ClientID: "plugin-client", Surface: lifecycle.Plugin, OrganizationID: 1}
	ofOrganization := func(id int64) Person {
		other := person
		other.OrganizationID = id
		return other
	}
	api := person
	api.ClientID, api.Surface = "api-client", lifecycle.API
	spaced := person
	spaced.Subject = "~ user 1 ~"

	for name, c := range map[string]struct {
		authorization string
		want          Person
	}{
		"as Cognito makes them":        {"Bearer " + p.token(nil), person},
		"the API's client":             {"Bearer " + p.token(members{"client_id": "api-client"}), api},
		"two spaces":                   {"Bearer  " + p.token(nil), person},
		"expired 29 seconds ago":       {"Bearer " + p.token(members{"exp": now - 29}), person},
		"nbf 29 seconds ahead":         {"Bearer " + p.token(members{"nbf": now + 29}), person},
		"iat 29 seconds ahead":         {"Bearer " + p.token(members{"iat": now + 29}), person},
		"no iat":                       {"Bearer " + p.token(members{"iat": nil}), person},
		"typ, as other pools write it": {"Bearer " + p.headed(members{"typ": "at+jwt"}), person},
		"printable sub":                {"Bearer " + p.token(members{"sub": "~ user 1 ~"}), spaced},
		"organization as a number":     {"Bearer " + p.token(members{"custom:organization_id": 42}), ofOrganization(42)},
		"organization as a string":     {"Bearer " + p.token(members{"custom:organization_id": "42"}), ofOrganization(42)},
		"largest organization": {"Bearer " + p.token(members{"custom:organization_id": "9223372036854775807"}),
			ofOrganization(9223372036854775807)},
		"claim of another spelling": {"Bearer " + p.token(members{"Custom:Organization_ID": 42}), person},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second time from memory
				got, err := tokens.Person(request(c.authorization))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// Every forgery of the corpus is refused for what is wrong with it, and told so without a word of the token.
func TestForgeriesAreRefused(t *testing.T) {
	p := newPool()
	mint, err := issuer.New(issuer.Config{URL: poolURL, Now: p.now})
	if err != nil {
		t.Fatal(err)
	}
	p.answer = func() (int, string) {
		w := httptest.NewRecorder()
		mint.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/.well-known/jwks.json", nil))
		return w.Code, w.Body.String()
	}
	tokens := p.tokens(t)
	claims := issuer.Claims{Subject: subject, ClientID: "plugin-client", OrganizationID: 1}
	good, err := mint.Mint(claims)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Person(bearing(good)); err != nil {
		t.Fatalf("what the forgeries are close to: %v", err)
	}
	forgeries, err := mint.Forgeries(claims)
	if err != nil || len(forgeries) < 60 {
		t.Fatalf("%d forgeries, %v", len(forgeries), err)
	}
	for _, f := range forgeries {
		t.Run(f.Name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/v1/projects/1/wf2des?"+f.Query, nil)
			r.Header["Authorization"] = f.Authorization
			for range 2 { // a refusal must not become a memory
				_, err := tokens.Person(r)
				reason := mustRefuse(t, err)
				if !strings.Contains(reason, f.Reason) {
					t.Errorf("reason %q, want %q in it", reason, f.Reason)
				}
				if repeats(reason, f.Authorization) {
					t.Errorf("reason %q repeats the token", reason)
				}
			}
		})
	}
}

// repeats looks for anything in a reason that a token says or is made of.
func repeats(reason string, authorization []string) bool {
	return strings.Contains(reason, "evil") || slices.ContainsFunc(authorization, func(value string) bool {
		return slices.ContainsFunc(strings.FieldsFunc(value, func(c rune) bool { return c == '.' || c == ' ' }), func(part string) bool {
			text, _ := base64.RawURLEncoding.DecodeString(part)
			return len(part) > 12 && strings.Contains(reason, part) || len(text) > 12 && strings.Contains(reason, string(text))
		})
	})
}

// The pool's clock and ours may be up to 30 seconds apart, and no more.
func TestTokensFromTheFuture(t *testing.T) {
	p := newPool()
	tokens := p.tokens(t)
	for _, member := range []string{"nbf", "iat"} {
		_, err := tokens.Person(bearing(p.token(members{member: p.now().Unix() + 31})))
		if reason := mustRefuse(t, err); !strings.Contains(reason, member+" is in the future") {
			t.Errorf("%s 31 s ahead: %q", member, reason)
		}
	}
}

// Every character of a token matters: nothing that differs from it in one is accepted, remembered or not.
func TestEveryCharacterCounts(t *testing.T) {
	p := newPool()
	tokens := p.tokens(t)
	good := []byte(p.token(nil))
	if _, err := tokens.Person(bearing(string(good))); err != nil {
		t.Fatal(err)
	}
	for i, c := range good {
		for _, other := range []byte("AB.=-") {
			if other == c {
				continue
			}
			mutant := append([]byte(nil), good...)
			mutant[i] = other
			_, err := tokens.Person(bearing(string(mutant)))
			mustRefuse(t, err)
		}
	}
}

func TestRememberedTokenExpiresToTheSecond(t *testing.T) {
	p := newPool()
	tokens := p.tokens(t)
	r := bearing(p.token(members{"exp": p.now().Unix() + 10}))
	ask := func() error { _, err := tokens.Person(r); return err }
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	p.pass(39 * time.Second)
	if err := ask(); err != nil {
		t.Fatalf("29 s past exp: %v", err)
	}
	p.pass(time.Second)
	if reason := mustRefuse(t, ask()); reason != "the token has expired" {
		t.Errorf("30 s past exp: %q", reason)
	}
}

func TestOrganizationClaimIsOptional(t *testing.T) {
	p := newPool()
	config := p.config()
	config.OrganizationClaim, config.DefaultOrganizationID = "", 7
	tokens, err := NewTokens(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tokens.Person(bearing(p.token(members{"custom:organization_id": 42, "": 43})))
	if err != nil || got.OrganizationID != 7 {
		t.Errorf("got organization %d, %v, want the default 7", got.OrganizationID, err)
	}
}

func TestTokensConfigNamesAllProblems(t *testing.T) {
	_, err := NewTokens(t.Context(), TokensConfig{Clients: map[string]lifecycle.Surface{"x": "browser"}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"no issuer", "is not a URL", `client id "x" has no surface`, "organization id is not positive"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if _, err := NewTokens(t.Context(), TokensConfig{Issuer: poolURL, DefaultOrganizationID: 1}); err == nil ||
		!strings.Contains(err.Error(), "nobody could call") {
		t.Errorf("no clients: %v", err)
	}
}
