package app

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"framerun.dev/pkg/web"
)

// line is a listener whose connections are pipes, so that a test's clock can stand still for them.
type line struct {
	calls chan net.Conn
	over  chan struct{}
}

func (l *line) Accept() (net.Conn, error) {
	select {
	case c := <-l.calls:
		return c, nil
	case <-l.over:
		return nil, net.ErrClosed
	}
}

func (l *line) Close() error   { close(l.over); return nil }
func (l *line) Addr() net.Addr { return &net.TCPAddr{} }

// call opens a connection and sends text on it.
func (l *line) call(t *testing.T, text string) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	l.calls <- server
	if _, err := io.WriteString(client, text); err != nil {
		t.Errorf("sending %q: %v", text, err)
	}
	return client
}

// served runs f with the service's own server on a line. Its handler reads a body of up to a hundred bytes, or writes a long answer.
func served(t *testing.T, f func(*testing.T, *line)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		rt := web.NewRouter()
		rt.Handle("GET", "/", func(*http.Request) (*web.Reply, error) { return &web.Reply{Status: 204}, nil })
		rt.Handle("GET", "/long", func(*http.Request) (*web.Reply, error) {
			return &web.Reply{Body: strings.Repeat("x", 1<<20)}, nil
		})
		rt.Handle("POST", "/", func(r *http.Request) (*web.Reply, error) {
			_, err := web.RawBody(r, 100)
			return &web.Reply{Status: 204}, err
		})
		log := slog.New(slog.DiscardHandler)
		h := web.Wrap(rt, web.Options{Service: "test", Logger: log, Metrics: prometheus.NewRegistry()})
		server, l := Config{Logger: log}.server(h), &line{make(chan net.Conn), make(chan struct{})}
		done := make(chan struct{})
		go func() { _ = server.Serve(l); close(done) }()
		f(t, l)
		_ = server.Close()
		<-done
	})
}

// trickle sends a byte each second until the server hangs up, and returns what the server said and after which time.
func trickle(client net.Conn) (said string, took time.Duration) {
	start, over := time.Now(), make(chan struct{})
	go func() {
		defer close(over)
		for every := time.Tick(time.Second); ; <-every {
			if _, err := io.WriteString(client, "x"); err != nil {
				return
			}
		}
	}()
	text, _ := io.ReadAll(client)
	took = time.Since(start)
	client.Close()
	<-over
	return string(text), took
}

// quick asks as an ordinary client, which must not feel that others are slow.
func (l *line) quick(t *testing.T) {
	t.Helper()
	start := time.Now()
	client := l.call(t, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	answer, err := io.ReadAll(client)
	if took := time.Since(start); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 204 ") || took != 0 {
		t.Errorf("an ordinary client got %q after %s (%v)", answer, took, err)
	}
}

// linger is how long net/http holds a connection after an answer that cuts it off, so that the answer is read.
const linger = 500 * time.Millisecond

func TestSlowClientsAreCutOff(t *testing.T) {
	for _, c := range []struct {
		name, request string
		says          string // how the answer begins, if one is due
		after         time.Duration
	}{
		{"who says nothing", "", "", 5 * time.Second},
		{"a slow request line", "GET /", "", 5 * time.Second},
		{"slow headers", "GET / HTTP/1.1\r\nHost: x\r\nA: ", "", 5 * time.Second},
		{"a slow body", "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n", "HTTP/1.1 400 ", 15 * time.Second},
		{"a slow chunk", "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n", "HTTP/1.1 400 ", 15 * time.Second},
		{"a slow body that nobody wants", "POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 90\r\n\r\n", "HTTP/1.1 404 ", 15 * time.Second},
		{"slow headers of a second request", "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nA: ", "HTTP/1.1 204 ", 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			served(t, func(t *testing.T, l *line) {
				slow := l.call(t, c.request)
				l.quick(t)
				said, took := trickle(slow)
				if !strings.HasPrefix(said, c.says) || took > c.after+linger {
					t.Errorf("the server said %.200q after %s; want %q within %s", said, took, c.says, c.after)
				}
				l.quick(t)
			})
		})
	}
}

// A body that does not come is the client's fault, and is said to be.
func TestASlowBodyIsAProblem(t *testing.T) {
	served(t, func(t *testing.T, l *line) {
		said, _ := trickle(l.call(t, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n"))
		for _, want := range []string{"application/problem+json", `"malformed_request"`, "did not arrive in time", "Connection: close"} {
			if !strings.Contains(said, want) {
				t.Errorf("%q is not in %q", want, said)
			}
		}
	})
}

// Many slow clients at once are as little in the way as one.
func TestManySlowClientsHarmNobody(t *testing.T) {
	served(t, func(t *testing.T, l *line) {
		cut := make(chan time.Duration)
		const many = 500
		for i := range many {
			slow := l.call(t, fmt.Sprintf("GET /%d HTTP/1.1\r\nHost: x\r\nA: ", i))
			go func() {
				_, took := trickle(slow)
				cut <- took
			}()
		}
		l.quick(t)
		for range many {
			if took := <-cut; took > 5*time.Second {
				t.Errorf("a slow client was cut off after %s", took)
			}
		}
	})
}

// A connection on which nothing comes is given up after a minute, and one on which nothing is read with the write timeout.
func TestIdleConnectionsAndUnreadAnswersAreGivenUp(t *testing.T) {
	served(t, func(t *testing.T, l *line) {
		idle := l.call(t, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		reader := bufio.NewReader(idle)
		if response, err := http.ReadResponse(reader, nil); err != nil || response.StatusCode != 204 {
			t.Fatalf("%v, %v", response, err)
		}
		start := time.Now()
		if _, err := reader.ReadByte(); err != io.EOF || time.Since(start) != time.Minute {
			t.Errorf("an idle connection ends after %s with %v", time.Since(start), err)
		}
		deaf := l.call(t, "GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
		<-time.After(41 * time.Second)
		if text, err := io.ReadAll(deaf); err != nil || len(text) > 64<<10 {
			t.Errorf("after 41 s without reading, %d bytes still come, %v", len(text), err)
		}
	})
}
