package e2e

import (
	"bytes"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"framerun.dev/deploy/local/stack"
	_ "github.com/lib/pq" // the driver named "postgres"
)

// suite is a running stack, and what a test needs to look at it from outside.
type suite struct {
	*stack.Stack
	at  stack.Address
	dir string // of the stack's state
	log *lines
	db  *sql.DB
}

// start runs a stack on free ports until the test ends. Its worker's pace is short.
func start(t *testing.T, c stack.Config) *suite {
	t.Helper()
	s := &suite{log: &lines{}}
	c.Dir, c.Bin, c.Routes = t.TempDir(), filepath.Join(root, ".bin"), routes()
	s.dir = c.Dir
	c.Pace, c.Log, c.PortBase = 20*time.Millisecond, s.log, portBase(t)
	running, err := stack.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Errorf("the stack does not stop in good order: %v", err)
		}
	})
	s.Stack, s.at = running, running.Address()
	if s.db, err = sql.Open("postgres", s.at.Postgres); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.db.Close() })
	return s
}

// lines takes down what the stack says of itself.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// width is more than any offset that a stack counts from its base.
const width = 32

// portBase finds a base on which nobody listens. Each is given out once, so that tests side by side do not meet.
func portBase(t *testing.T) int {
	t.Helper()
	for range 200 {
		base := 20000 + width*rand.IntN(11000/width)
		if _, taken := given.LoadOrStore(base, true); !taken && free(base) {
			return base
		}
	}
	t.Fatalf("no %d free ports in a row between 20000 and 31000", width)
	return 0
}

var given sync.Map

func free(base int) bool {
	for port := base; port < base+width; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

// eventually asks until ok says yes.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !ok(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", within, what)
		}
	}
}

// ready reports what a service's readyz says; false also while nobody answers.
func (s *suite) ready(service string) bool {
	res, err := http.Get(s.at.Services[service].Ops + "/readyz")
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// signal sends the service's process a signal and returns its pid.
func (s *suite) signal(t *testing.T, service string, sig syscall.Signal) int {
	t.Helper()
	pid := s.Process(service)
	if pid == 0 {
		t.Fatalf("%s is not running", service)
	}
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
	return pid
}

// back waits until the service has a process other than pid, and that one is ready.
func (s *suite) back(t *testing.T, service string, pid int) {
	t.Helper()
	eventually(t, 10*time.Second, service+" runs again", func() bool {
		now := s.Process(service)
		return now != 0 && now != pid && s.ready(service)
	})
}

// number asks the database for one number.
func (s *suite) number(t *testing.T, query string, args ...any) int {
	t.Helper()
	var n int
	if err := s.db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}
