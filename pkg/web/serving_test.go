package web_test

import (
	"bytes"
	"encoding/json/v2"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"framerun.dev/pkg/web"
)

// patience is how long a test waits for what should come at once.
const patience = 10 * time.Second

// site is a router behind Wrap on a real server.
type site struct {
	address string
	url     string
	client  *http.Transport // its own: a connection kept from another site that had the same port is dead
	metrics *prometheus.Registry
	log     *logLines
}

// serve starts a site that ends with the test.
func serve(t *testing.T, rt http.Handler, o web.Options) *site {
	t.Helper()
	s := &site{client: &http.Transport{}, metrics: prometheus.NewRegistry(), log: &logLines{}}
	o.Service, o.Metrics = "test", s.metrics
	o.Logger = slog.New(slog.NewJSONHandler(s.log, nil))
	server := &http.Server{Handler: web.Wrap(rt, o), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	l := listen(t)
	s.address, s.url = l.Addr().String(), "http://"+l.Addr().String()
	done := make(chan struct{})
	go func() { _ = server.Serve(l); close(done) }()
	t.Cleanup(func() { s.client.CloseIdleConnections(); _ = server.Close(); <-done })
	return s
}

// listen opens a loopback port below those that outgoing connections take.
func listen(t *testing.T) net.Listener {
	t.Helper()
	for range 100 {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000))); err == nil {
			return l
		}
	}
	t.Fatal("no free port between 20000 and 32000")
	return nil
}

// answer is a response that was read to its end.
type answer struct {
	*http.Response
	body string
}

// problem is the part of a problem document that tests look at.
type problem struct {
	Type, Title, Detail, Code, RequestID string
	Status                               int
	Errors                               []fault
}

type fault struct {
	Pointer   *string
	Parameter string
	Detail    string
}

// problem reads the answer as a problem document and checks what all of them promise.
func (a answer) problem(t *testing.T) problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal([]byte(a.body), &p, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatalf("%d %q: %v", a.StatusCode, a.body, err)
	}
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type %q", got)
	}
	if p.Status != a.StatusCode || p.Type != "/problems/"+p.Code || p.Title == "" || p.Detail == "" {
		t.Errorf("an incomplete problem: %d %s", a.StatusCode, a.body)
	}
	if p.RequestID == "" || p.RequestID != a.Header.Get("X-Request-Id") {
		t.Errorf("requestId %q, X-Request-Id %q", p.RequestID, a.Header.Get("X-Request-Id"))
	}
	return p
}

// send makes one request; header is "Name: value" lines. Redirects are not followed.
func (s *site) send(t *testing.T, method, path, body string, header ...string) answer {
	t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, content)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Add(name, value)
	}
	return s.do(t, req)
}

func (s *site) do(t *testing.T, req *http.Request) answer {
	t.Helper()
	resp, err := s.client.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp, string(text)}
}

// logLines collects what a logger writes.
type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// line waits for the n-th line, counted from 0: it is written after the answer has left.
func (l *logLines) line(t *testing.T, n int) map[string]any {
	t.Helper()
	var lines []string
	eventually(t, fmt.Sprintf("log line %d", n), func() bool {
		lines = strings.Split(l.String(), "\n")
		return len(lines) > n+1
	})
	var line map[string]any
	if err := json.Unmarshal([]byte(lines[n]), &line); err != nil {
		t.Fatalf("%q: %v", lines[n], err)
	}
	return line
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); !holds(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// say is a handler that always gives the same reply.
func say(reply *web.Reply) web.Handler {
	return func(*http.Request) (*web.Reply, error) { return reply, nil }
}

// refuse is a handler that always fails.
func refuse(err error) web.Handler {
	return func(*http.Request) (*web.Reply, error) { return nil, err }
}

// read decodes a good answer into v.
func read(t *testing.T, a answer, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), v, json.MatchCaseInsensitiveNames(true)); err != nil || a.StatusCode >= 300 {
		t.Fatalf("%d %q: %v", a.StatusCode, a.body, err)
	}
}

// raw sends bytes that no client library would, closes its half of the connection and returns all that comes back.
func (s *site) raw(t *testing.T, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
