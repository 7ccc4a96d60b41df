// Package stack runs the whole suite on one machine: the four real services as processes of their own, a real PostgreSQL, the
// real nats-server embedded, and stand-ins for what only AWS has (SQS, S3, Cognito), behind a gateway that reads the route file
// that production uses.
package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"framerun.dev/deploy/local/sqs"
	"framerun.dev/deploy/local/worker"
	"framerun.dev/pkg/auth/issuer"
	"framerun.dev/pkg/resultdoc"
	natsserver "github.com/nats-io/nats-server/v2/server"
)

// Config says what stack is wanted.
type Config struct {
	Dir         string                       // where stack.json and the logs go; made if missing
	Bin         string                       // the folder of the built services
	Routes      string                       // the route file, deploy/base/routes.yaml
	PortBase    int                          // 0: DefaultBase
	Worker      string                       // "scripted" answers jobs, "none" leaves them in the queues
	Pace        time.Duration                // between two words of the scripted worker; 0: 700 ms
	DocumentDB  bool                         // a document store as well; Bin must hold the program documentdb
	DatabaseURL string                       // a database to use instead of a PostgreSQL of the stack's own
	Twice       []string                     // services that run as two processes, the second one called name-2
	Env         map[string]map[string]string // by service, or by one process of it: variables beside, or instead of, the stack's own
	Log         io.Writer                    // what happens to the stack, a line each; nil: nowhere
}

// Stack is a running suite.
type Stack struct {
	SQS  *sqs.Server
	NATS *natsserver.Server

	config    Config
	ports     Ports
	address   Address
	reader    string // the database as service query signs in to it
	issuer    *issuer.Issuer
	documents *resultdoc.Documents // nil: there is no document store
	processes map[string]*process
	closers   []closer // in the order of starting; stopped in the other
}

type closer struct {
	name string
	stop func() error
}

// Start brings everything up and returns when all services are ready, or with what went wrong, after taking down what was up.
func Start(ctx context.Context, c Config) (*Stack, error) {
	c.fill()
	s := &Stack{config: c, ports: Ports{c.PortBase}, processes: map[string]*process{}}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (c *Config) fill() {
	if c.PortBase == 0 {
		c.PortBase = DefaultBase
	}
	if c.Worker == "" {
		c.Worker = "scripted"
	}
	if c.Pace == 0 {
		c.Pace = 700 * time.Millisecond
	}
	if c.Log == nil {
		c.Log = io.Discard
	}
}

func (s *Stack) start(ctx context.Context) error {
	if s.config.Worker != "scripted" && s.config.Worker != "none" {
		return fmt.Errorf("stack: WORKER must be scripted or none")
	}
	for _, name := range s.config.Twice {
		if !slices.Contains(Names, name) {
			return fmt.Errorf("stack: there is no service %q to run twice", name)
		}
	}
	if err := s.ports.check(s.config.running()); err != nil {
		return err
	}
	if err := os.MkdirAll(s.logs(), 0o755); err != nil {
		return fmt.Errorf("stack: %w", err)
	}
	if err := s.lock(); err != nil {
		return err
	}
	s.address.Worker = s.config.Worker
	for _, part := range []struct {
		name  string
		start func(context.Context) error
	}{
		{"PostgreSQL", s.startPostgres}, {"NATS", s.startNATS}, {"the AWS stand-ins", s.startAWS}, {"the token issuer", s.startIssuer},
		{"DocumentDB", s.startDocumentDB}, {"the services", s.startServices}, {"the gateway", s.startGateway}, {"the worker", s.startWorker},
	} {
		if err := part.start(ctx); err != nil {
			return fmt.Errorf("starting %s: %w", part.name, err)
		}
	}
	s.onStop("stack.json", func() error { return os.Remove(AddressFile(s.config.Dir)) })
	return s.address.write(s.config.Dir)
}

// lock keeps a second stack out of the folder: there is one stack.json in it. The kernel lets go of the lock when this process ends.
func (s *Stack) lock() error {
	f, err := os.OpenFile(filepath.Join(s.config.Dir, "lock"), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("stack: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return fmt.Errorf("stack: a suite is up already with its state in %s; stop it first, or start a second one from another clone", s.config.Dir)
	}
	s.onStop("the lock", f.Close)
	return nil
}

// Address is where everything is found.
func (s *Stack) Address() Address { return s.address }

// Stop ends everything in the reverse order of starting, so that services drain while what they need is still there. It waits until
// all of it is gone.
func (s *Stack) Stop() error {
	var errs []error
	for _, c := range slices.Backward(s.closers) {
		if err := c.stop(); err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", c.name, err))
		}
	}
	s.closers = nil
	return errors.Join(errs...)
}

// Process is the pid of the service's process, or of its second one (query-2); 0 while it is down.
func (s *Stack) Process(name string) int {
	p := s.processes[name]
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}

func (s *Stack) onStop(name string, stop func() error) {
	s.closers = append(s.closers, closer{name, stop})
}

func (s *Stack) logs() string { return filepath.Join(s.config.Dir, "logs") }

func (s *Stack) say(format string, args ...any) { fmt.Fprintf(s.config.Log, format+"\n", args...) }

// logger writes the JSON log of a part that runs inside this process.
func (s *Stack) logger(part string) (*slog.Logger, error) {
	f, err := s.logFile(part)
	if err != nil {
		return nil, err
	}
	return slog.New(slog.NewJSONHandler(f, nil)).With("service", part), nil
}

func (s *Stack) logFile(part string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(s.logs(), part+".log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err == nil {
		s.onStop(part+".log", f.Close)
	}
	return f, err
}

// serve answers on one of the stack's ports until the stack stops.
func (s *Stack) serve(offset int, name string, h http.Handler) error {
	l, err := listen(s.ports.address(offset))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		DisableGeneralOptionsHandler: true} // the gateway passes `OPTIONS *` on as well
	go server.Serve(l)
	s.onStop(name, server.Close)
	return nil
}

func (s *Stack) startWorker(ctx context.Context) error {
	if s.config.Worker == "none" {
		return nil
	}
	log, err := s.logger("worker")
	if err != nil {
		return err
	}
	w := worker.Worker{SQS: s.sqsClient(), S3: s.s3Client(), Queues: s.address.Queues, Bucket: s.address.Bucket,
		Secret: s.address.Webhook.Secret, Documents: s.documents, Pace: s.config.Pace, Log: log}
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { defer close(done); w.Run(working) }()
	s.onStop("worker", func() error { cancel(); <-done; return nil })
	return nil
}
