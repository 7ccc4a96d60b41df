package events

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/nats-io/nats-server/v2/server"
)

// nerve is a real nats-server on a port and a folder of its own, which outlive its restarts.
type nerve struct {
	port int
	dir  string
	*server.Server
}

// newNerve does not start the server yet.
func newNerve(t *testing.T) *nerve {
	t.Helper()
	for range 100 {
		port := 20000 + rand.IntN(12000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			n := &nerve{port: port, dir: t.TempDir()}
			t.Cleanup(n.stop)
			return n
		}
	}
	t.Fatal("no free port between 20000 and 32000")
	return nil
}

func (n *nerve) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", n.port) }

func (n *nerve) start(t *testing.T) *nerve {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: n.port, JetStream: true, StoreDir: n.dir, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	n.Server = s
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("nats-server was not ready in time")
	}
	return n
}

func (n *nerve) stop() {
	if n.Server != nil {
		n.Shutdown()
		n.WaitForShutdown()
		n.Server = nil
	}
}

func (n *nerve) connect(t *testing.T) *Bus {
	t.Helper()
	b, err := Connect(n.url(), "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// settled makes sure that the server knows b's subscriptions.
func settled(t *testing.T, b *Bus) {
	t.Helper()
	if err := b.conn.FlushTimeout(10 * time.Second); err != nil {
		t.Fatal(err)
	}
}

// eventually fails unless holds becomes true in good time.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// next is the next value that c brings.
func next[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(15 * time.Second):
		t.Fatal("nothing was heard")
		panic("unreachable")
	}
}

func ref(kind lifecycle.Kind, i int) lifecycle.Ref {
	return lifecycle.Ref{Kind: kind, ID: fmt.Sprintf("01980000-0000-7000-8000-%012d", i)}
}
