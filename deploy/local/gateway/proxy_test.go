package gateway

import (
	"bufio"
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// start serves a gateway for the routes, with a server for each backend, and returns its host and port.
func start(t *testing.T, routes []byte, backends map[string]http.Handler) string {
	t.Helper()
	c := Config{Routes: routes, Backends: map[string][]*url.URL{}, Logger: slog.New(slog.DiscardHandler)}
	for name, h := range backends {
		c.Backends[name] = at(serve(t, h))
	}
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, g)
}

// at are the backends with these hosts and ports.
func at(hosts ...string) (backends []*url.URL) {
	for _, host := range hosts {
		backends = append(backends, &url.URL{Scheme: "http", Host: host})
	}
	return backends
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s := &httptest.Server{Listener: listen(t), Config: &http.Server{Handler: h, ErrorLog: quiet}}
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.Listener.Addr().String()
}

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

// raw sends a request as it is written and returns the answer with its body read.
func raw(t *testing.T, host, request string) *http.Response {
	t.Helper()
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	reply, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	reply.Body = io.NopCloser(strings.NewReader(string(text)))
	return reply
}

var all = []byte(route("all", to("query")))

func TestTargetIsPassedOnByteForByte(t *testing.T) {
	t.Parallel()
	gateway := start(t, all, map[string]http.Handler{"query": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.RequestURI)
	})})
	for _, target := range []string{
		"/", "//", "//x", "///x//y/", "/a/../b", "/..", "/./a", "/%2F", "/a%2fb", "/%2e%2e", "/%7E~", "/a|b^`\"<>\\", "/é", "/a;b=c", "/a#b", "/a:b@c",
		"/?", "/x?", "/x?a;b", "/x?a=%zz&b=1", "/x?a=1&a=2&&=", "/x?a=b?c", "/x?é", "/x?a=%2F/..//",
	} {
		reply := raw(t, gateway, "GET "+target+" HTTP/1.1\r\nHost: framerun\r\n\r\n")
		if got, _ := io.ReadAll(reply.Body); reply.StatusCode != http.StatusOK || string(got) != target {
			t.Errorf("%s arrived as %s (%d)", target, got, reply.StatusCode)
		}
	}
	reply := raw(t, gateway, "GET http://framerun/a/%2F?b HTTP/1.1\r\nHost: framerun\r\n\r\n")
	if got, _ := io.ReadAll(reply.Body); string(got) != "/a/%2F?b" {
		t.Errorf("the absolute form arrived as %s", got)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	var got *http.Request
	gateway := start(t, all, map[string]http.Handler{"query": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Connection", "X-Private")
		w.Header().Set("X-Private", "1")
		w.WriteHeader(http.StatusMovedPermanently)
	})})
	reply := raw(t, gateway, "GET / HTTP/1.1\r\nHost: framerun:1\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nForwarded: for=6.6.6.6\r\n"+
		"Connection: X-Hop\r\nX-Hop: 1\r\nPrefer: wait=5\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n")
	for name, want := range map[string]string{
		"X-Forwarded-For":   "127.0.0.1",
		"X-Forwarded-Proto": "http",
		"X-Forwarded-Host":  "framerun:1",
		"Forwarded":         "",
		"X-Hop":             "",
		"Connection":        "",
		"Prefer":            "wait=5",
		"Authorization":     "Bearer a|Bearer b",
		"Accept-Encoding":   "",
		"User-Agent":        "",
	} {
		if value := strings.Join(got.Header.Values(name), "|"); value != want {
			t.Errorf("%s arrived as %q; want %q", name, value, want)
		}
	}
	if got.Host != "framerun:1" {
		t.Errorf("Host arrived as %q", got.Host)
	}
	if origins := reply.Header.Values("Access-Control-Allow-Origin"); len(origins) != 1 || reply.StatusCode != http.StatusMovedPermanently || reply.Header.Get("X-Private") != "" {
		t.Errorf("the answer came back as %d %v", reply.StatusCode, reply.Header)
	}
}

func TestStreamsEachEventAndEndsWithItsClient(t *testing.T) {
	t.Parallel()
	next, ended := make(chan string), make(chan struct{})
	gateway := start(t, all, map[string]http.Handler{"query": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		for {
			select {
			case event := <-next:
				_, _ = io.WriteString(w, event+"\n")
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})})
	ctx, leave := context.WithTimeout(t.Context(), 10*time.Second)
	defer leave()
	go func() { next <- "one" }()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+gateway+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	lines := bufio.NewScanner(reply.Body)
	for _, event := range []string{"two", "three", "four"} { // the next is sent only after the last has come
		if !lines.Scan() {
			t.Fatalf("the stream ended before %q: %v", event, lines.Err())
		}
		next <- event
	}
	leave()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the backend still serves a client that has gone")
	}
}

func TestBrokenExchanges(t *testing.T) {
	t.Parallel()
	closed := listen(t)
	down := closed.Addr().String()
	_ = closed.Close()
	cut := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	})
	const post = "POST / HTTP/1.1\r\nHost: framerun\r\nOrigin: null\r\n"
	const get = "GET / HTTP/1.1\r\nHost: framerun\r\nOrigin: null\r\n\r\n"
	for name, test := range map[string]struct {
		backend, request string
		status           int
		code             string
	}{
		"backend down":                   {down, get, 503, "unavailable"},
		"backend down, nothing was sent": {down, post + "Content-Length: 2\r\n\r\n{}", 503, "unavailable"},
		"backend cuts a GET":             {serve(t, cut), get, 503, "unavailable"},
		"backend cuts a POST it has got": {serve(t, cut), post + "Content-Length: 2\r\n\r\n{}", 503, "outcome_unknown"},
		"client's chunks are malformed":  {serve(t, cut), post + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n", 400, "malformed_request"},
	} {
		g, err := New(Config{Routes: all, Backends: map[string][]*url.URL{"query": at(test.backend)}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		checkProblem(t, name, raw(t, serve(t, g), test.request), test.status, test.code)
	}
}

func TestNoRoute(t *testing.T) {
	t.Parallel()
	gateway := start(t, []byte(route("a", on("Exact", "/a", "GET"), to("query"))), map[string]http.Handler{"query": http.NotFoundHandler()})
	checkProblem(t, "no route", raw(t, gateway, "GET /b HTTP/1.1\r\nHost: framerun\r\n\r\n"), 404, "not_found")

	everything := start(t, []byte(route("a", on("PathPrefix", "/", ""), to("query"))), map[string]http.Handler{"query": http.NotFoundHandler()})
	checkProblem(t, "a tunnel", raw(t, everything, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n"), 404, "not_found")
}

// checkProblem wants a problem document that a page in a sandbox may read.
func checkProblem(t *testing.T, name string, reply *http.Response, status int, code string) {
	t.Helper()
	var problem struct {
		Status    int
		Code      string
		RequestID string `json:"requestId"`
	}
	text, _ := io.ReadAll(reply.Body)
	if err := json.Unmarshal(text, &problem, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Errorf("%s: %v in %s", name, err, text)
	}
	if reply.StatusCode != status || problem.Status != status || problem.Code != code || problem.RequestID == "" {
		t.Errorf("%s: %d %s; want %d %s", name, reply.StatusCode, text, status, code)
	}
	if (status == 503) != (reply.Header.Get("Retry-After") != "") {
		t.Errorf("%s: Retry-After is %q", name, reply.Header.Get("Retry-After"))
	}
	for header, want := range map[string]string{
		"Content-Type":                "application/problem+json",
		"Access-Control-Allow-Origin": "*",
		"X-Request-Id":                problem.RequestID,
	} {
		if got := strings.Join(reply.Header.Values(header), "|"); got != want {
			t.Errorf("%s: %s is %q; want %q", name, header, got, want)
		}
	}
	if !strings.Contains(reply.Header.Get("Access-Control-Expose-Headers"), "Retry-After") {
		t.Errorf("%s: Retry-After is not exposed", name)
	}
}
