// Package load is for asking a server many things at once while taking as little as possible of the processors that it shares
// with the server: HTTP/1.1 over kept connections, requests written as ready bytes, answers read without being taken apart.
package load

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// Client is one kept connection. It is for one goroutine.
type Client struct {
	conn net.Conn
	in   *bufio.Reader
	body bytes.Buffer
}

// Dial connects to host:port.
func Dial(ctx context.Context, address string) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	return &Client{conn: conn, in: bufio.NewReaderSize(conn, 4096)}, nil
}

// Close ends the connection; a Do that is under way fails.
func (c *Client) Close() { c.conn.Close() }

// Until bounds all that is still asked over this connection.
func (c *Client) Until(t time.Time) { c.conn.SetDeadline(t) }

// Do sends a whole request and reads the whole answer. The body is good until the next Do.
func (c *Client) Do(request []byte) (status int, body []byte, err error) {
	if _, err := c.conn.Write(request); err != nil {
		return 0, nil, fmt.Errorf("load: asking: %w", err)
	}
	status, err = c.read()
	if err != nil {
		return 0, nil, fmt.Errorf("load: the answer: %w", err)
	}
	return status, c.body.Bytes(), nil
}

func (c *Client) read() (int, error) {
	h, err := c.head()
	if err != nil {
		return 0, err
	}
	c.body.Reset()
	switch {
	case h.status == 204 || h.status == 304:
		return h.status, nil
	case h.chunked:
		return h.status, c.chunks()
	case h.length >= 0:
		_, err := io.CopyN(&c.body, c.in, h.length)
		return h.status, err
	}
	return 0, fmt.Errorf("status %d without a length", h.status)
}

type head struct {
	status  int
	length  int64 // of the body; -1: not said
	chunked bool
}

func (c *Client) head() (head, error) {
	h := head{length: -1}
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return h, err
	}
	if len(line) < len("HTTP/1.1 200") || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return h, fmt.Errorf("%q is no HTTP", line)
	}
	if h.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return h, fmt.Errorf("%q has no status", line)
	}
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil || len(line) <= len("\r\n") {
			return h, err
		}
		if err := h.field(line); err != nil {
			return h, err
		}
	}
}

// field looks at what says where the body ends. net/http writes these names in this spelling.
func (h *head) field(line []byte) (err error) {
	if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
		h.length, err = strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
	} else if bytes.HasPrefix(line, []byte("Transfer-Encoding: chunked")) {
		h.chunked = true
	}
	return err
}

func (c *Client) chunks() error {
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		size, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 32)
		if err != nil {
			return err
		}
		if _, err := io.CopyN(&c.body, c.in, size); err != nil {
			return err
		}
		if _, err := c.in.Discard(len("\r\n")); err != nil || size == 0 {
			return err
		}
	}
}
