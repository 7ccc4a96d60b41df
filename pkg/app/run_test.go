package app_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/app"
)

func TestRunSaysAtOnceThatAPortIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []app.Config{
		{Name: "intake", Listen: taken.Addr().String(), OpsListen: freeAddress(t)},
		{Name: "intake", Listen: freeAddress(t), OpsListen: taken.Addr().String()},
	} {
		err := app.Run(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), taken.Addr().String()) || !strings.Contains(err.Error(), "address already in use") {
			t.Errorf("got %v", err)
		}
	}
	if err := app.Run(t.Context(), app.Config{Name: "intake"}); err == nil {
		t.Error("no address is no error: a random port would have been opened")
	}
}

func TestAFailingBackgroundJobEndsTheService(t *testing.T) {
	fail := make(chan struct{})
	s := start(t, app.Config{Background: []func(context.Context) error{
		func(context.Context) error { return nil }, // done early, which is fine
		func(context.Context) error { <-fail; return errors.New("relay: lost its way") },
	}})
	close(fail)
	if err := s.end(t); err == nil || !strings.Contains(err.Error(), "relay: lost its way") {
		t.Errorf("got %v", err)
	}
}

// A request in flight may need what the background work does, so the work goes on until the last answer is out.
func TestBackgroundWorkOutlivesTheLastRequest(t *testing.T) {
	entered, release, order := make(chan struct{}), make(chan struct{}), make(chan string, 2)
	s := start(t, app.Config{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(entered)
			<-release
			order <- "request"
		}),
		Background: []func(context.Context) error{func(ctx context.Context) error {
			<-ctx.Done()
			order <- "background"
			return ctx.Err() // asked to end: no failure
		}},
	})
	answered := make(chan int)
	go func() { status, _ := get(s.url); answered <- status }()
	<-entered
	s.stop()
	eventually(t, "readyz says no", func() bool {
		status, body := get(s.ops + "/readyz")
		return status == 503 && strings.Contains(body, "draining")
	})
	close(release)
	if status := <-answered; status != 200 {
		t.Errorf("the request got %d", status)
	}
	if err := s.end(t); err != nil {
		t.Errorf("a clean end: %v", err)
	}
	if first, second := <-order, <-order; first != "request" || second != "background" {
		t.Errorf("%s ended before %s", first, second)
	}
}

func TestWhatDoesNotEndInTimeIsCutOffAndSaid(t *testing.T) {
	t.Run("request", func(t *testing.T) {
		entered := make(chan struct{})
		s := start(t, app.Config{DrainTimeout: 50 * time.Millisecond, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(entered)
			<-r.Context().Done()
		})})
		answered := make(chan int, 1)
		go func() { status, _ := get(s.url); answered <- status }()
		<-entered
		s.stop()
		if err := s.end(t); err == nil || !strings.Contains(err.Error(), "cut off") {
			t.Errorf("got %v", err)
		}
		select {
		case status := <-answered:
			if status != 0 {
				t.Errorf("a request that was cut off got %d", status)
			}
		case <-time.After(patience / 2):
			t.Error("the request is still held")
		}
	})
	t.Run("background", func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		s := start(t, app.Config{DrainTimeout: 50 * time.Millisecond, Background: []func(context.Context) error{
			func(context.Context) error { <-release; return nil },
		}})
		s.stop()
		if err := s.end(t); err == nil || !strings.Contains(err.Error(), "did not end in time") {
			t.Errorf("got %v", err)
		}
	})
}

// During the delay requests are still taken, but each asks its client to come back on another connection, elsewhere.
func TestConnectionsAreGivenUpWhileDraining(t *testing.T) {
	s := start(t, app.Config{DrainDelay: 300 * time.Millisecond})
	client := http.Client{Transport: &http.Transport{}, Timeout: patience}
	defer client.CloseIdleConnections()
	closes := func() bool {
		resp, err := client.Get(s.url)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return resp.Close
	}
	if closes() {
		t.Error("a connection was given up for no reason")
	}
	s.stop()
	eventually(t, "an answer closes its connection", closes)
}

func TestServerBoundsHeadersAndLeavesOptionsToTheHandler(t *testing.T) {
	s := start(t, app.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	})})
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: " + strings.Repeat("a", 64<<10) + "\r\n\r\n": "HTTP/1.1 431",
		"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":                              "HTTP/1.1 418",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(conn, request) }()
		answer := make([]byte, len(want))
		if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != want {
			t.Errorf("%.20q: %s %v", request, answer, err)
		}
		_ = conn.Close()
	}
}

func TestDrainingOutsideOfRunIsNeverClosed(t *testing.T) {
	select {
	case <-app.Draining(t.Context()):
		t.Error("closed")
	default:
	}
}
