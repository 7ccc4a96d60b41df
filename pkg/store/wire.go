package store

import (
	"net"
	"time"
)

// dialer opens connections to PostgreSQL that do not wait for ever. A server that hangs, or a network that swallows everything, sends
// no answer to a cancel request either, and lib/pq would wait for it.
type dialer struct{ silence time.Duration }

// Dial implements pq.Dialer.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialTimeout(network, address, d.silence)
}

// DialTimeout implements pq.Dialer.
func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	return &wire{conn, d.silence}, nil
}

// wire is a connection whose every read and write ends after a while of silence.
type wire struct {
	net.Conn
	silence time.Duration
}

func (w *wire) Read(p []byte) (int, error) {
	if err := w.SetReadDeadline(time.Now().Add(w.silence)); err != nil {
		return 0, err
	}
	return w.Conn.Read(p)
}

func (w *wire) Write(p []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(w.silence)); err != nil {
		return 0, err
	}
	return w.Conn.Write(p)
}
