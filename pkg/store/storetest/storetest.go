// Package storetest gives every test a PostgreSQL database of its own, with the suite's tables, the platform's
// stand-ins and their few rows in it. There is no way to test without a database: where none can be had, tests fail and say
// what to install.
package storetest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// shared is the server that all tests of one test binary use, started by the first that asks. It has to be known to the
// package, because the tests have nothing else in common.
var shared lazy

type lazy struct {
	once   sync.Once
	server *server
	err    error
}

func (l *lazy) open() (*server, error) {
	l.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		l.server, l.err = open(ctx, os.Getenv("DATABASE_URL"))
	})
	return l.server, l.err
}

// close stops what open has started, if anything.
func (l *lazy) close() error {
	l.once.Do(func() {})
	if l.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return l.server.close(ctx)
}

// Main runs the tests of a package that uses New, and stops their server afterwards:
//
//	func TestMain(m *testing.M) { storetest.Main(m) }
//
// It does not come back.
func Main(m *testing.M) {
	code := m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// New is the URL of a fresh database for lib/pq. It holds what platform.Seed makes and no run; it is dropped when the test
// is over. Tests may call it in parallel and more than once.
//
// It is served by a PostgreSQL of this test binary's own that does not wait for the disk, or, when DATABASE_URL is
// set, by the server named there, in databases made for the purpose.
func New(t testing.TB) string {
	t.Helper()
	return fresh(t, (*server).clone)
}

// Alone reports whether tests shall hold over single transactions instead of shared ones: GROUP_COMMIT=false.
func Alone() bool { return os.Getenv("GROUP_COMMIT") == "false" }

// Reader is the URL of a database that New has made, for somebody with the rights of service query: framerun_reader's.
func Reader(t testing.TB, address string) string {
	t.Helper()
	s, err := shared.open()
	if err != nil {
		t.Fatal(err)
	}
	return s.asReader(address)
}

// empty is the URL of a fresh database without any table.
func empty(t testing.TB) string {
	t.Helper()
	return fresh(t, (*server).blank)
}

func fresh(t testing.TB, create func(*server, context.Context) (string, error)) string {
	t.Helper()
	s, err := shared.open()
	if err != nil {
		t.Fatal(err)
	}
	name, err := create(s, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.drop(ctx, name); err != nil {
			t.Error(err)
		}
	})
	return s.url(name)
}
