package gateway

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// replicas serves a gateway with a backend on each of the hosts.
func replicas(t *testing.T, hosts ...string) string {
	t.Helper()
	g, err := New(Config{Routes: all, Backends: map[string][]*url.URL{"query": at(hosts...)}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, g)
}

// named answers with its name.
func named(t *testing.T, name string) string {
	t.Helper()
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
}

// nobody is where nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	l := listen(t)
	_ = l.Close()
	return l.Addr().String()
}

const get, post = "GET / HTTP/1.1\r\nHost: framerun\r\n\r\n", "POST / HTTP/1.1\r\nHost: framerun\r\nContent-Length: 2\r\n\r\n{}"

// answers sends a request n times, each over a connection of its own, and strings the answers together.
func answers(t *testing.T, gateway, request string, n int) string {
	t.Helper()
	var all strings.Builder
	for range n {
		reply := raw(t, gateway, request)
		text, _ := io.ReadAll(reply.Body)
		if reply.StatusCode != http.StatusOK {
			text = fmt.Appendf(nil, "%d", reply.StatusCode)
		}
		all.Write(text)
	}
	return all.String()
}

// Catches a gateway that leaves a client with one backend, or forgets one of them.
func TestBackendsTakeTurns(t *testing.T) {
	t.Parallel()
	gateway := replicas(t, named(t, "a"), named(t, "b"), named(t, "c"))
	for _, request := range []string{get, post} {
		if got := answers(t, gateway, request, 6); got != "abcabc" {
			t.Errorf("%.4s: the answers are from %s", request, got)
		}
	}
}

// A reader is not made to suffer from a replica that is gone. What has a body may not be sent again by anybody but its client.
func TestBackendsThatAreGoneArePassedOver(t *testing.T) {
	t.Parallel()
	gateway := replicas(t, nobody(t), named(t, "a"), nobody(t))
	if got := answers(t, gateway, get, 6); got != "aaaaaa" {
		t.Errorf("the answers are from %s", got)
	}
	var asking sync.WaitGroup // many at once: they must not take each other's turns
	for range 100 {
		asking.Go(func() {
			reply, err := http.Get("http://" + gateway)
			if err != nil || reply.StatusCode != http.StatusOK {
				t.Errorf("one of many got %v, %v", reply, err)
			}
		})
	}
	asking.Wait()
	if got := answers(t, gateway, post, 3); strings.Count(got, "a") != 1 || strings.Count(got, "503") != 2 {
		t.Errorf("the answers to POST are %s", got)
	}
	checkProblem(t, "all are gone", raw(t, replicas(t, nobody(t), nobody(t)), get), 503, "unavailable")
}

// Catches a request that is sent twice although a backend had it.
func TestWhatABackendHadIsNotSentToAnother(t *testing.T) {
	t.Parallel()
	var had atomic.Int32
	cut := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		had.Add(1)
		panic(http.ErrAbortHandler)
	})
	gateway := replicas(t, serve(t, cut), serve(t, cut))
	checkProblem(t, "a GET is cut", raw(t, gateway, get), 503, "unavailable")
	checkProblem(t, "a POST is cut", raw(t, gateway, post), 503, "outcome_unknown")
	if n := had.Load(); n != 2 {
		t.Errorf("two requests arrived %d times", n)
	}
}

func TestRefusesBackendsThatAreNone(t *testing.T) {
	t.Parallel()
	for name, backends := range map[string][]*url.URL{
		"none":        nil,
		"one is nil":  {at("127.0.0.1:1")[0], nil},
		"no host":     {{Scheme: "http"}},
		"no scheme":   {{Host: "127.0.0.1:1"}},
		"with a path": {at("127.0.0.1:1")[0], {Scheme: "http", Host: "127.0.0.1:1", Path: "/x"}},
	} {
		if _, err := New(Config{Routes: all, Backends: map[string][]*url.URL{"query": backends}, Logger: slog.New(slog.DiscardHandler)}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
