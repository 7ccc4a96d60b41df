package servicetest

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"testing"
	"time"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/auth/issuer"
)

// patience is how long a test waits for what should come at once.
const patience = 20 * time.Second

// Main is a service's run function.
type Main func(ctx context.Context, lookup func(string) (string, bool), out io.Writer) error

// Environment is a whole configuration of a service in this world, with own on top. There is no NATS at its address: a service
// has to work without.
func (w *World) Environment(t testing.TB, own map[string]string) map[string]string {
	t.Helper()
	env := map[string]string{
		"LISTEN": FreeAddress(t), "OPS_LISTEN": FreeAddress(t), "DATABASE_URL": w.URL, "NATS_URL": "nats://" + FreeAddress(t),
		"COGNITO_ISSUER": pool(t).url, "COGNITO_CLIENTS": PluginClient + "=plugin," + APIClient + "=api",
		"ORGANIZATION_CLAIM": issuer.OrganizationClaim, "SERVICE_ACCOUNT_SUB": platform.UserWorker,
	}
	maps.Copy(env, own)
	return env
}

// Lookup reads a configuration as os.LookupEnv would.
func Lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
}

// Running is a service that its run function serves.
type Running struct {
	*Client
	Ops   string // the URL of the ops port
	stop  context.CancelFunc
	ended chan error
}

// Start runs a service with env and waits until it says that it is ready. It is stopped with the test at the latest.
func (w *World) Start(t testing.TB, run Main, env map[string]string) *Running {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	transport, log := &http.Transport{}, &Log{}
	r := &Running{
		Client: &Client{URL: "http://" + env["LISTEN"], HTTP: &http.Client{Transport: transport, CheckRedirect: noRedirect}, Log: log, cors: true},
		Ops:    "http://" + env["OPS_LISTEN"], stop: stop, ended: make(chan error, 1),
	}
	done := make(chan struct{})
	go func() { r.ended <- run(ctx, Lookup(env), log); close(done) }()
	t.Cleanup(func() { stop(); <-done; transport.CloseIdleConnections() })
	Eventually(t, "the service is ready", func() bool {
		select {
		case err := <-r.ended:
			t.Fatalf("the service ended at once: %v", err)
		default:
		}
		response, err := r.HTTP.Get(r.Ops + "/readyz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return r
}

// Stop tells the service to stop, without waiting for it.
func (r *Running) Stop() { r.stop() }

// End waits until the service has ended and returns what its run function returned.
func (r *Running) End() error {
	select {
	case err := <-r.ended:
		r.ended <- err
		return err
	case <-time.After(patience):
		return errors.New("servicetest: the service does not end")
	}
}

// Eventually waits until what holds, and fails the test if it does not in good time.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("after %s it still does not hold that %s", patience, what)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}
