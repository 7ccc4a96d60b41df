package fuzz

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	// patience is how long an answer may take: longer than any statement, lock or pool may be waited for.
	patience = 8 * time.Second
	// idle is when a connection is no longer used again: well before a server lets it go.
	idle = 3 * time.Second
)

// Reply is an answer that was read to its end; of a stream, to the end of its first event.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
	Length int64 // as announced; -1: not
}

// wire speaks HTTP/1.1 with one server over one connection, byte for byte: a client library would mend what is sent, and would
// hide a stray byte in what comes back.
type wire struct {
	address string
	conn    net.Conn
	in      *bufio.Reader
	last    time.Time
}

// exchange sends r and reads the answer. The connection is used again if the server allows it.
func (w *wire) exchange(r *Request) (*Reply, error) {
	if err := w.open(); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(patience)
	if err := w.conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	_, sending := w.conn.Write(r.bytes(w.address)) // a server may answer, and hang up, before it has read all
	reply, last, err := w.read(r.Method)
	if err != nil {
		w.close()
		return nil, errors.Join(err, sending)
	}
	if w.last = time.Now(); last || sending != nil {
		w.close()
	}
	return reply, nil
}

func (w *wire) open() error {
	if w.conn != nil && time.Since(w.last) < idle {
		return nil
	}
	w.close()
	conn, err := net.DialTimeout("tcp", w.address, patience)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	w.conn, w.in = conn, bufio.NewReader(conn)
	return nil
}

func (w *wire) close() {
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}

// read reads one answer, past any interim ones. It reports whether it was the connection's last.
func (w *wire) read(method string) (reply *Reply, last bool, err error) {
	res, err := http.ReadResponse(w.in, &http.Request{Method: method})
	for err == nil && res.StatusCode < 200 {
		res, err = http.ReadResponse(w.in, &http.Request{Method: method})
	}
	if err != nil {
		return nil, true, fmt.Errorf("reading the answer's head: %w", err)
	}
	reply = &Reply{Status: res.StatusCode, Header: res.Header, Length: res.ContentLength}
	if res.Header.Get("Content-Type") == "text/event-stream" && method != http.MethodHead {
		reply.Body, err = firstEvent(res.Body)
		return reply, true, err
	}
	if reply.Body, err = io.ReadAll(res.Body); err != nil {
		return nil, true, fmt.Errorf("reading the answer's body: %w", err)
	}
	if stray := w.in.Buffered(); stray > 0 {
		return nil, true, fmt.Errorf("%d bytes follow the answer", stray)
	}
	return reply, res.Close, nil
}

func firstEvent(body io.Reader) ([]byte, error) {
	var event []byte
	part := make([]byte, 4096)
	for {
		n, err := body.Read(part)
		event = append(event, part[:n]...)
		switch {
		case bytes.Contains(event, []byte("\n\n")):
			return event, nil
		case err != nil:
			return event, fmt.Errorf("reading the first event: %w", err)
		}
	}
}
