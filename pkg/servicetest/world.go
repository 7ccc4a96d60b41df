// Package servicetest is for testing a service as its callers meet it: requests with real tokens over a real connection, through
// web.Wrap and the service's own routes, to a real store. What became of them is then read in the database: the row, the timeline
// and the outbox.
//
// A test makes a World, serves the routes of a service made of its parts, and sends requests as one of its Principals:
//
//	w := servicetest.New(t)
//	c := w.Serve(t, (&server{store: w.Store, people: w.People, told: func(lifecycle.Ref) {}}).routes())
//	reply := c.Send(t, "POST", path, w.Owner, `{}`)
//
// The package's TestMain is storetest.Main, for it is storetest that starts PostgreSQL.
package servicetest

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"

	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"framerun.dev/pkg/store/storetest"
	"framerun.dev/pkg/web"
)

// World is what surrounds a service in one test: a database of its own, the store on it, and the people who may call.
type World struct {
	Principals
	Store  *store.Store
	People *auth.People
	SQL    *sqlx.DB // a second way into the database, to look and to arrange behind the store's back
	URL    string   // of the database, for services: what they say to it is counted, see Asked

	wire    *wire
	nodes   atomic.Int64
	planted map[int64][]lifecycle.Run
}

// New makes a world that ends with the test.
func New(t testing.TB) *World {
	t.Helper()
	address := storetest.New(t)
	w := &World{Principals: principals(t)}
	w.wire, w.URL = wireTo(t, address)
	var err error
	if w.Store, err = store.Open(w.URL, store.Options{Alone: storetest.Alone()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Store.Close() })
	if w.SQL, err = sqlx.Open("postgres", address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.SQL.Close() })
	w.People = people(t, w.Store)
	return w
}

// Serve answers requests by the router, wrapped as in production, until the test ends. A request that ends as an error of ours (a
// 500, a panic) fails the test.
func (w *World) Serve(t testing.TB, router *web.Router) *Client {
	t.Helper()
	return w.ServeWith(t, router, web.Options{})
}

// ServeWith is Serve with options of the test's own; service name, metrics and, unless one is given, the logger are filled in.
func (w *World) ServeWith(t testing.TB, router *web.Router, o web.Options) *Client {
	t.Helper()
	o.Service, o.Metrics = "test", prometheus.NewRegistry()
	log := &Log{}
	if o.Logger == nil {
		o.Logger = slog.New(alarm{log.Logger().Handler(), t})
	}
	server := httptest.NewUnstartedServer(web.Wrap(router, o))
	server.Listener.Close() // it is on a port of the kernel's choice
	server.Listener = Listen(t)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	server.Start()
	t.Cleanup(server.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	return &Client{
		URL: server.URL, HTTP: &http.Client{Transport: transport, CheckRedirect: noRedirect},
		Log: log, routes: router.Routes(), cors: !o.NoCORS,
	}
}
