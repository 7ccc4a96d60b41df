package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/events"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"framerun.dev/pkg/web"
)

// Main runs a service with the real environment and ends the process: 0 after a clean end, 1 with a sentence on standard error.
func Main(service string, run func(ctx context.Context, lookup func(string) (string, bool), out io.Writer) error) {
	// From the first moment on, being told to stop means a clean end. Run listens too, for itself.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop) // a second signal kills
	ballast := make([]byte, ballastBytes)
	err := run(ctx, os.LookupEnv, os.Stdout)
	runtime.KeepAlive(ballast)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", service, strings.TrimPrefix(err.Error(), service+": "))
		os.Exit(1)
	}
}

// ballastBytes are never written to, so they take no memory; but the garbage collector counts them. What a service keeps alive is so little
// that it would otherwise collect after every few megabytes of requests, for a tenth of the processor.
const ballastBytes = 32 << 20

// Base is the configuration that all services share.
type Base struct {
	Listen      string        // LISTEN: the public port
	OpsListen   string        // OPS_LISTEN: livez, readyz, metrics
	DatabaseURL string        // DATABASE_URL
	Pool        int           // DATABASE_POOL: connections to PostgreSQL
	Alone       bool          // GROUP_COMMIT=false: each command in a transaction of its own, to see what sharing one is worth
	NATSURL     string        // NATS_URL
	LogLevel    slog.Level    // LOG_LEVEL
	MaxInFlight int           // MAX_IN_FLIGHT: more requests at once are answered 503
	Profiling   bool          // PROFILING: the ops port shows where time and memory go; what it shows may hold what callers sent
	DrainDelay  time.Duration // DRAIN_DELAY: how long a load balancer needs to hear of readyz

	Effects store.Effects // what this service carries outside; the service's to say
}

// ReadBase reads Base; problems are kept in e. maxInFlight is what MAX_IN_FLIGHT is when it is not set: requests that use PostgreSQL
// must not outnumber its connections by too much, requests that only wait may.
func ReadBase(e *Env, maxInFlight int) Base {
	return Base{
		Listen:      e.Listen("LISTEN"),
		OpsListen:   e.Listen("OPS_LISTEN"),
		DatabaseURL: e.RequiredURL("DATABASE_URL", "postgres", "postgresql"),
		Pool:        e.Int("DATABASE_POOL", 12, 2, 200),
		Alone:       !e.Bool("GROUP_COMMIT", true),
		NATSURL:     e.RequiredURL("NATS_URL", "nats", "tls"),
		LogLevel:    e.Level("LOG_LEVEL", slog.LevelInfo),
		MaxInFlight: e.Int("MAX_IN_FLIGHT", maxInFlight, 1, 1_000_000),
		Profiling:   e.Bool("PROFILING", false),
		DrainDelay:  e.Duration("DRAIN_DELAY", 0),
	}
}

// ReadTokens reads which user pool and clients are trusted; problems are kept in e.
func ReadTokens(e *Env) auth.TokensConfig {
	c := auth.TokensConfig{
		Issuer:                e.RequiredURL("COGNITO_ISSUER"),
		JWKSURL:               e.URL("COGNITO_JWKS_URL", ""),
		OrganizationClaim:     e.String("ORGANIZATION_CLAIM", ""),
		DefaultOrganizationID: int64(e.Int("DEFAULT_ORGANIZATION_ID", 1, 1, 1<<31-1)),
		Clients:               map[string]lifecycle.Surface{},
	}
	for client, surface := range e.Map("COGNITO_CLIENTS") {
		if s := lifecycle.Surface(surface); s == lifecycle.Plugin || s == lifecycle.API {
			c.Clients[client] = s
			continue
		}
		e.Refuse("COGNITO_CLIENTS", "must name a surface, plugin or api, for each client id, such as 1h57kf5cpq17m0eml12EXAMPLE=plugin")
	}
	if len(c.Clients) == 0 && e.String("COGNITO_CLIENTS", "") == "" {
		e.Refuse("COGNITO_CLIENTS", "is required: the client ids that may sign in, such as 1h57kf5cpq17m0eml12EXAMPLE=plugin")
	}
	return c
}

// Parts are what all services are made of.
type Parts struct {
	Service string
	Base    Base
	Log     *slog.Logger
	Metrics *prometheus.Registry
	Store   *store.Store
	Bus     *events.Bus

	carried *prometheus.CounterVec
}

// Open makes the parts. Servers that are down now are no error: readyz shows them, and they are used as soon as they are there.
func Open(service string, base Base, out io.Writer) (*Parts, error) {
	p := &Parts{Service: service, Base: base, Log: NewLogger(out, service, base.LogLevel), Metrics: NewRegistry(), carried: newCarried()}
	var err error
	options := store.Options{Pool: base.Pool, Alone: base.Alone, Effects: base.Effects}
	if p.Store, err = store.Open(base.DatabaseURL, options); err != nil {
		return nil, err
	}
	if p.Bus, err = events.Connect(base.NATSURL, service, p.Log); err != nil {
		p.Store.Close()
		return nil, err
	}
	p.Metrics.MustRegister(p.carried, collectors.NewDBStatsCollector(p.Store.Pool(), "framerun"))
	return p, nil
}

// Close gives the parts back.
func (p *Parts) Close() {
	p.Bus.Close()
	p.Store.Close()
}

// People admits the platform's users by the tokens of the configured pool.
func (p *Parts) People(ctx context.Context, c auth.TokensConfig) (*auth.People, error) {
	c.Log = p.Log
	tokens, err := auth.NewTokens(ctx, c)
	if err != nil {
		return nil, err
	}
	return &auth.People{Tokens: tokens, Known: p.Store.KnowsUser}, nil
}

// Serving is what a service adds to its parts.
type Serving struct {
	Routes     *web.Router
	NoCORS     bool    // for routes that no browser may call
	Checks     []Check // beside PostgreSQL and NATS
	Background []func(ctx context.Context) error
}

// Serve answers requests until ctx ends or the process is told to stop. PostgreSQL is critical for every service; NATS is not: without
// it everything works, only slower.
func (p *Parts) Serve(ctx context.Context, s Serving) error {
	checks := append([]Check{
		{Name: "postgres", Critical: true, Ask: p.Store.Ping},
		{Name: "nats", Ask: func(context.Context) error { return p.Bus.Check() }},
	}, s.Checks...)
	return Run(ctx, Config{
		Name: p.Service, Listen: p.Base.Listen, OpsListen: p.Base.OpsListen,
		Handler: web.Wrap(s.Routes, web.Options{
			Service: p.Service, Logger: p.Log, Metrics: p.Metrics, MaxInFlight: p.Base.MaxInFlight, NoCORS: s.NoCORS,
		}),
		Health: NewHealth(checks...), Metrics: p.Metrics, Logger: p.Log, Profiling: p.Base.Profiling, DrainDelay: p.Base.DrainDelay, Background: s.Background,
	})
}
