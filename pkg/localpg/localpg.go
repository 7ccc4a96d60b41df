// Package localpg runs a real PostgreSQL server from the programs installed on this machine, for the local stack
// and for tests: as root and as anybody, with data that stays or goes, and never longer than the process that started it.
// It is made for Linux.
package localpg

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Superuser is the role that the server knows. Whoever reaches the port on 127.0.0.1 is let in as it without a
// password: such a server is for data that may be lost and read by every user of the machine.
const Superuser = "framerun"

// Config says what server is wanted. The zero value is a throwaway server for tests.
type Config struct {
	// Dir keeps the data from one start to the next; it is made if missing. Empty means a folder of its own that
	// Stop removes. As root, when the user who runs the server cannot get into Dir (it lies under /root, say), the
	// data goes to a folder under /var/tmp that belongs to Dir alone.
	Dir string
	// Port on 127.0.0.1. 0 picks a free one from 20000 to 32000.
	Port int
	// Durable keeps what was committed through a crash of the machine. Without it the server does not wait for
	// the disk; a crash of its processes alone loses nothing even so.
	Durable bool
	// LogFile takes what the server prints, appended. Empty means postgres.log beside the data.
	LogFile string
	// Settings are server parameters by name, as in postgresql.conf. They win over those that Start chooses, but
	// for the address.
	Settings map[string]string
}

// Server is a running PostgreSQL.
type Server struct {
	port    int
	process *process
	folder  *folder
	stop    func() error
}

// Start runs a server and comes back when it takes connections, or with an error that says what to mend. ctx
// bounds the start alone, which never takes longer than a minute; the server then lives until Stop, or until this process
// ends in whatever way.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s, err := start(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("localpg: %w", err)
	}
	return s, nil
}

func start(ctx context.Context, cfg Config) (*Server, error) {
	if err := refuseTaken(cfg.Port); err != nil {
		return nil, err
	}
	as, err := whoRuns()
	if err != nil {
		return nil, err
	}
	bin, err := findPrograms(as, os.Getenv("POSTGRES_BIN"), usualPlaces())
	if err != nil {
		return nil, err
	}
	folder, err := openFolder(cfg.Dir, as)
	if err != nil {
		return nil, err
	}
	s, err := startIn(ctx, folder, programs{dir: bin, as: as}, cfg)
	if err != nil {
		return nil, errors.Join(err, folder.close())
	}
	return s, nil
}

func startIn(ctx context.Context, f *folder, p programs, cfg Config) (*Server, error) {
	if cfg.LogFile == "" {
		cfg.LogFile = filepath.Join(f.path, "postgres.log")
	}
	if err := p.ensureCluster(ctx, f, cfg.Durable); err != nil {
		return nil, err
	}
	if err := waitForOthers(ctx, f.data()); err != nil {
		return nil, err
	}
	if err := clearStalePid(f.data()); err != nil {
		return nil, err
	}
	port, running, err := p.serve(ctx, f.data(), cfg)
	if err != nil {
		return nil, err
	}
	s := &Server{port: port, process: running, folder: f}
	s.stop = sync.OnceValue(s.stopOnce)
	return s, nil
}

// URL is the address of a database of this server for lib/pq. A fresh server has one, "postgres".
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", Superuser, s.port, url.PathEscape(database))
}

// Done is closed when the server has ended, be it by Stop or by itself.
func (s *Server) Done() <-chan struct{} {
	return s.process.done
}

// Stop ends the server and comes back when it is gone: open transactions are rolled back, their clients cut off.
// Every call after the first waits for the same end and reports the same.
func (s *Server) Stop() error {
	return s.stop()
}

func (s *Server) stopOnce() error {
	first := syscall.SIGINT // "fast": cut clients off, write everything down
	if s.folder.throwaway {
		first = syscall.SIGQUIT // "immediate": nobody will read this data again
	}
	if err := errors.Join(s.process.end(first), s.folder.close()); err != nil {
		return fmt.Errorf("localpg: stopping: %w", err)
	}
	return nil
}
