package servicetest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/auth/issuer"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

// The client ids of the pool: what signs in with them is the plugin, or the API.
const (
	PluginClient = "plugin-client"
	APIClient    = "api-client"
)

// Principal is somebody who sends requests. The zero Token sends none, and without a Secret nothing is signed.
type Principal struct {
	Name      string
	Subject   string
	Token     string
	Secret    string // of a worker, who signs what it sends
	ProjectID int64  // the project that this principal asks for
}

// sign gives the headers that go with a body.
func (p Principal) sign(t testing.TB, body string) http.Header {
	t.Helper()
	if p.Secret == "" {
		return nil
	}
	webhooks, err := auth.NewWebhooks([]string{p.Secret}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return webhooks.Sign("msg_"+rand.Text(), time.Now(), []byte(body))
}

// Principals are all kinds of callers that a route must tell apart.
type Principals struct {
	Owner             Principal // a user of the plugin, in project 1 of organization 1
	Colleague         Principal // another user of the same project, by the API
	OtherProject      Principal // the same organization, but asking under project 2
	OtherOrganization Principal // organization 2 in its own project 3
	Intruder          Principal // organization 2, asking under project 1 of organization 1
	Expired           Principal // the owner with a token of yesterday
	Unknown           Principal // a valid token of somebody whom the platform does not know
	Nobody            Principal // no token at all
	Worker            Principal // no token, but a worker's signature
}

// userPool is a pool with its endpoint. The tests of one binary share it, because making its key takes a while.
type userPool struct {
	*issuer.Issuer
	url string
}

var sharedPool = sync.OnceValues(openPool)

func openPool() (*userPool, error) {
	var listener net.Listener
	err := errors.New("servicetest: no port was tried")
	for range 100 {
		if listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+mathrand.IntN(12000))); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("servicetest: no port for the user pool: %w", err)
	}
	p := &userPool{url: "http://" + listener.Addr().String()}
	if p.Issuer, err = issuer.New(issuer.Config{URL: p.url}); err != nil {
		return nil, err
	}
	go func() { _ = http.Serve(listener, p.Issuer) }() // until the test binary ends
	return p, nil
}

func pool(t testing.TB) *userPool {
	t.Helper()
	p, err := sharedPool()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Mint makes a token of the shared pool.
func Mint(t testing.TB, claims issuer.Claims) string {
	t.Helper()
	token, err := pool(t).Mint(claims)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// sharedForgeries are those of the owner's token. The tests of one binary share them, because signing takes a while.
var sharedForgeries = sync.OnceValues(func() ([]issuer.Forgery, error) {
	p, err := sharedPool()
	if err != nil {
		return nil, err
	}
	return p.Forgeries(issuer.Claims{Subject: platform.UserPlugin, ClientID: PluginClient, OrganizationID: platform.OrganizationID})
})

func principals(t testing.TB) Principals {
	t.Helper()
	const own, other = platform.OrganizationID, platform.OtherOrganizationID
	mint := func(name, subject, client string, organization, project int64, life time.Duration) Principal {
		token := Mint(t, issuer.Claims{Subject: subject, ClientID: client, OrganizationID: organization, Lifetime: life})
		return Principal{Name: name, Subject: subject, Token: token, ProjectID: project}
	}
	return Principals{
		Owner:             mint("owner", platform.UserPlugin, PluginClient, own, platform.ProjectID, 0),
		Colleague:         mint("colleague", platform.UserAPI, APIClient, own, platform.ProjectID, 0),
		OtherProject:      mint("other project", platform.UserPlugin, PluginClient, own, platform.OtherProjectID, 0),
		OtherOrganization: mint("other organization", platform.UserOtherOrganization, PluginClient, other, platform.OtherOrganizationProjectID, 0),
		Intruder:          mint("intruder", platform.UserOtherOrganization, PluginClient, other, platform.ProjectID, 0),
		Expired:           mint("expired", platform.UserPlugin, PluginClient, own, platform.ProjectID, -24*time.Hour),
		Unknown:           mint("unknown", "somebody-else", PluginClient, own, platform.ProjectID, 0),
		Nobody:            Principal{Name: "nobody", ProjectID: platform.ProjectID},
		Worker:            Principal{Name: "worker", Secret: freshSecret(), ProjectID: platform.ProjectID},
	}
}

// freshSecret is one that nobody else signs with.
func freshSecret() string {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails (crypto/rand)
	return "whsec_" + base64.StdEncoding.EncodeToString(secret[:])
}

// people admits those whom the store's platform knows, by the tokens of the shared pool.
func people(t testing.TB, s *store.Store) *auth.People {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	tokens, err := auth.NewTokens(ctx, auth.TokensConfig{
		Issuer:            pool(t).url,
		Clients:           map[string]lifecycle.Surface{PluginClient: lifecycle.Plugin, APIClient: lifecycle.API},
		OrganizationClaim: issuer.OrganizationClaim, DefaultOrganizationID: platform.OrganizationID,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &auth.People{Tokens: tokens, Known: s.KnowsUser}
}
