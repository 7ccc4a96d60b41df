package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config is what Run runs.
type Config struct {
	Name      string
	Listen    string // address of the public port
	OpsListen string // address of /livez, /readyz and /metrics
	Handler   http.Handler
	Health    *Health
	Metrics   prometheus.Gatherer
	Logger    *slog.Logger
	Profiling bool // the ops port offers /debug/pprof/ too

	// DrainDelay is how long requests are still accepted after readyz has begun to say no: the time that a load balancer needs
	// to hear of it. 0 on a single machine.
	DrainDelay time.Duration
	// DrainTimeout bounds how long requests in flight may take to end, and then how long background work may. 0 stands for ten
	// seconds.
	DrainTimeout time.Duration

	// Background runs beside the server from start to end. It must return when its context ends, which is after the last
	// request was answered; what it returns then is no failure. If one fails before, the service drains and Run returns its error.
	Background []func(ctx context.Context) error
}

const drainTimeout = 10 * time.Second

// Run serves until ctx ends, SIGTERM or SIGINT arrives, or something fails. Then, in this order: readyz says no and waiting
// requests learn of it (Draining); after DrainDelay no connection is accepted any more and requests in flight end; background
// work ends; the ops port closes. A clean end is nil. A second signal kills.
//
// A port that is taken is an error at once.
func Run(ctx context.Context, c Config) error {
	if c.DrainTimeout == 0 {
		c.DrainTimeout = drainTimeout
	}
	public, ops, err := c.listen(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	told, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	l := newLife(c)
	l.start(context.WithoutCancel(ctx), public, ops)
	c.Logger.Info("started", slog.String("listen", public.Addr().String()), slog.String("ops", ops.Addr().String()))

	select {
	case <-told.Done():
	case err = <-l.failed:
	}
	stop()
	c.Logger.Info("draining", slog.String("delay", c.DrainDelay.String()), slog.String("timeout", c.DrainTimeout.String()))
	if err = errors.Join(err, l.end()); err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	c.Logger.Info("stopped")
	return nil
}

// listen opens both ports before anything starts.
func (c Config) listen(ctx context.Context) (public, ops net.Listener, err error) {
	if c.Listen == "" || c.OpsListen == "" {
		return nil, nil, errors.New("app: both a public and an ops address are needed")
	}
	var listener net.ListenConfig
	if public, err = listener.Listen(ctx, "tcp", c.Listen); err != nil {
		return nil, nil, fmt.Errorf("app: opening the public port: %w", err)
	}
	if ops, err = listener.Listen(ctx, "tcp", c.OpsListen); err != nil {
		_ = public.Close()
		return nil, nil, fmt.Errorf("app: opening the ops port: %w", err)
	}
	return public, ops, nil
}

// life is what Run has started and must end.
type life struct {
	Config
	drain      drain
	public     *http.Server
	ops        *http.Server
	failed     chan error // the first failures; the rest follow from them
	cancel     context.CancelFunc
	background sync.WaitGroup
}

func newLife(c Config) *life {
	l := &life{Config: c, drain: make(drain), failed: make(chan error, len(c.Background)+2)}
	l.public = c.server(l.drain.announced(c.Handler))
	l.ops = c.server(ops(c.Health, c.Metrics, c.Profiling))
	return l
}

func (l *life) start(ctx context.Context, public, ops net.Listener) {
	l.public.BaseContext = func(net.Listener) context.Context { return l.drain.in(ctx) }
	go l.serve(l.public, public)
	go l.serve(l.ops, ops)

	working, cancel := context.WithCancel(ctx)
	l.cancel = cancel
	for _, work := range l.Background {
		l.background.Go(func() {
			if err := work(working); err != nil && working.Err() == nil {
				l.failed <- fmt.Errorf("background: %w", err)
			}
		})
	}
}

func (l *life) serve(s *http.Server, on net.Listener) {
	if err := s.Serve(on); !errors.Is(err, http.ErrServerClosed) {
		l.failed <- fmt.Errorf("app: serving %s: %w", on.Addr(), err)
	}
}

// end takes everything down in the order that Run promises. Nothing is left behind without an error that says so.
func (l *life) end() error {
	l.Health.Drain()
	close(l.drain)
	time.Sleep(l.DrainDelay)

	err := shut(l.public, l.DrainTimeout)
	l.cancel()
	if !within(l.DrainTimeout, l.background.Wait) {
		err = errors.Join(err, errors.New("app: background work did not end in time"))
	}
	return errors.Join(err, l.ops.Close(), l.failure())
}

// failure is what went wrong while the service was ending already, if anything did.
func (l *life) failure() error {
	select {
	case err := <-l.failed:
		return err
	default:
		return nil
	}
}

// shut lets requests in flight end, and cuts off those that take too long.
func shut(s *http.Server, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		_ = s.Close()
		return fmt.Errorf("app: requests were cut off after %s: %w", timeout, err)
	}
	return nil
}

func within(timeout time.Duration, wait func()) bool {
	done := make(chan struct{})
	go func() { wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(timeout):
		return false
	}
}
