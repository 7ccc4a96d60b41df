package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"framerun.dev/pkg/lifecycle"
)

// TokensConfig says which user pool is trusted, and for which of its clients.
type TokensConfig struct {
	Issuer                string                       // the iss that tokens must have, to the letter
	JWKSURL               string                       // where the pool's keys are; empty: Issuer + "/.well-known/jwks.json"
	Clients               map[string]lifecycle.Surface // the app clients that may call, and what each of them is
	OrganizationClaim     string                       // the claim that names the organization; empty: there is none
	DefaultOrganizationID int64                        // for tokens without that claim

	HTTPClient *http.Client     // nil: one of its own. A fetch lasts 5 seconds at most, whichever it is
	Now        func() time.Time // nil: time.Now
	Log        *slog.Logger     // told when a key set could not be refreshed while an older one goes on serving; nil: nobody
}

func (c TokensConfig) problems() error {
	var problems []error
	if c.Issuer == "" {
		problems = append(problems, errors.New("no issuer"))
	}
	if u, err := url.Parse(c.JWKSURL); err != nil || u.Host == "" {
		problems = append(problems, fmt.Errorf("the JWKS address %q is not a URL", c.JWKSURL))
	}
	if len(c.Clients) == 0 {
		problems = append(problems, errors.New("no client id is allowed, so nobody could call"))
	}
	for id, surface := range c.Clients {
		if id == "" || surface != lifecycle.Plugin && surface != lifecycle.API {
			problems = append(problems, fmt.Errorf("client id %q has no surface (plugin or api)", id))
		}
	}
	if c.DefaultOrganizationID <= 0 {
		problems = append(problems, errors.New("the default organization id is not positive"))
	}
	return errors.Join(problems...)
}

// Tokens tells people by their access tokens. It is safe for concurrent use.
type Tokens struct {
	config   TokensConfig
	keys     *keys
	verified memory[[sha256.Size]byte, verified]
}

// verified is a token's person. It counts only while the set that verified the token is the one in use, so that a key which
// the pool withdrew is not trusted by way of the memory.
type verified struct {
	person Person
	ring   *ring
}

// NewTokens starts to fetch the pool's keys and returns at once: a pool that is down does not keep a service from starting.
// The fetches end with ctx. The error names everything that is wrong with the configuration.
func NewTokens(ctx context.Context, config TokensConfig) (*Tokens, error) {
	config.JWKSURL = cmp.Or(config.JWKSURL, config.Issuer+"/.well-known/jwks.json")
	config.HTTPClient = cmp.Or(config.HTTPClient, &http.Client{})
	config.Log = cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	if config.Now == nil {
		config.Now = time.Now
	}
	if err := config.problems(); err != nil {
		return nil, fmt.Errorf("auth: configuring tokens: %w", err)
	}
	k := &keys{ctx: ctx, url: config.JWKSURL, client: config.HTTPClient, now: config.Now, log: config.Log}
	k.ask()
	return &Tokens{config: config, keys: k}, nil
}

// Person gives the person whose access token the request carries in its one Authorization header.
//
// Its errors are *UnauthenticatedError, ErrKeysUnavailable, and the request's own context error if it ended while keys were
// being fetched.
func (t *Tokens) Person(r *http.Request) (Person, error) {
	raw, err := bearer(r.Header)
	if err != nil {
		return Person{}, err
	}
	sum := sha256.Sum256([]byte(raw))
	if known, ok := t.verified.recall(sum, t.config.Now()); ok && known.ring == t.keys.current() {
		return known.person, nil
	}
	parsed, err := parse(raw)
	if err != nil {
		return Person{}, err
	}
	ring, key, err := t.keys.find(r.Context(), parsed.keyID)
	if err != nil {
		return Person{}, err
	}
	// Of the library only the signature is used: its parser reads JSON leniently.
	if jwt.SigningMethodRS256.Verify(parsed.signed, parsed.signature, key) != nil {
		return Person{}, unauthenticated("the token's signature does not fit its content")
	}
	until, err := parsed.claims.validUntil(t.config.Now())
	if err != nil {
		return Person{}, err
	}
	person, err := t.person(parsed.claims)
	if err != nil {
		return Person{}, err
	}
	t.verified.keep(sum, verified{person, ring}, until)
	return person, nil
}

// person reads the claims of a Cognito access token. It has no aud: the client that it was made for is in client_id.
func (t *Tokens) person(claims object) (Person, error) {
	if err := claims.exactly("iss", t.config.Issuer, "the token's iss is another issuer"); err != nil {
		return Person{}, err
	}
	if err := claims.exactly("token_use", "access", "the token is not an access token"); err != nil {
		return Person{}, err
	}
	client, err := claims.text("client_id")
	if err != nil {
		return Person{}, err
	}
	surface, allowed := t.config.Clients[client]
	if !allowed {
		return Person{}, unauthenticated("the token's client_id is not allowed here")
	}
	subject, err := claims.subject()
	if err != nil {
		return Person{}, err
	}
	organization, err := t.organization(claims)
	if err != nil {
		return Person{}, err
	}
	return Person{Subject: subject, ClientID: client, Surface: surface, OrganizationID: organization}, nil
}

// organization reads the configured claim: a positive whole number, bare or as a string, for Cognito's own attributes are
// strings. A claim that is there and unreadable is refused: the default organization is for tokens that name none.
func (t *Tokens) organization(claims object) (int64, error) {
	name := t.config.OrganizationClaim
	value, there := claims[name]
	if name == "" || !there {
		return t.config.DefaultOrganizationID, nil
	}
	digits := string(value)
	if value.Kind() == jsontext.KindString {
		var err error
		if digits, err = claims.text(name); err != nil {
			return 0, err
		}
	}
	id, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || id <= 0 || strconv.FormatInt(id, 10) != digits { // the last: no sign, no leading zeros
		return 0, unauthenticated("the token's organization is not a positive whole number")
	}
	return id, nil
}
