package servicetest

import (
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
)

// wire is the line between a store and PostgreSQL. It counts what the store says, so that a test can see that it said nothing.
type wire struct {
	door   net.Listener
	server string
	said   atomic.Int64 // bytes
}

// Asked is how many bytes the world's store and services have sent to PostgreSQL so far. While it stands still no SQL is run.
func (w *World) Asked() int64 { return w.wire.said.Load() }

// wireTo makes a line to the database at address, and the address at this end of it.
func wireTo(t testing.TB, address string) (*wire, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal("servicetest: the database's address is no URL")
	}
	w := &wire{door: Listen(t), server: u.Host}
	t.Cleanup(func() { w.door.Close() })
	u.Host = w.door.Addr().String()
	go w.accept()
	return w, u.String()
}

// accept joins each caller to the server until the door is closed.
func (w *wire) accept() {
	for {
		client, err := w.door.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.server)
		if err != nil {
			client.Close()
			continue
		}
		go carry(client, server)
		go carry(server, io.TeeReader(client, w))
	}
}

// Write counts.
func (w *wire) Write(p []byte) (int, error) {
	w.said.Add(int64(len(p)))
	return len(p), nil
}

// carry forwards one way; when that way ends, so does the line.
func carry(to net.Conn, from io.Reader) {
	_, _ = io.Copy(to, from)
	to.Close()
}
