package web_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"framerun.dev/pkg/web"
)

func TestRequestsBeyondTheBoundAreTurnedAwayAtOnce(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	rt := web.NewRouter()
	rt.Handle(http.MethodGet, "/", func(*http.Request) (*web.Reply, error) {
		entered <- struct{}{}
		<-release
		return &web.Reply{Status: 204}, nil
	})
	s := serve(t, rt, web.Options{MaxInFlight: 2})
	held := make(chan int)
	for range 2 {
		go func() {
			if resp, err := http.Get(s.url); err == nil {
				_ = resp.Body.Close()
				held <- resp.StatusCode
				return
			}
			held <- 0
		}()
		<-entered
	}
	got := s.send(t, http.MethodGet, "/", "")
	if p := got.problem(t); p.Code != "unavailable" || got.Header.Get("Retry-After") == "" || got.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%s %v", got.body, got.Header)
	}
	preflight := s.send(t, http.MethodOptions, "/", "", "Origin: null", "Access-Control-Request-Method: GET")
	if preflight.StatusCode != 204 {
		t.Errorf("a preflight waits for nobody: %d", preflight.StatusCode)
	}
	close(release)
	for range 2 {
		if status := <-held; status != 204 {
			t.Errorf("a request within the bound got %d", status)
		}
	}
	go func() { <-entered }()
	eventually(t, "a place is free again", func() bool { return s.send(t, http.MethodGet, "/", "").StatusCode == 204 })
}

// dawdler has a place and a body that does not come to its end.
func (s *site) dawdler(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{")
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// end sends the rest of a dawdler's body and reads its answer.
func end(t *testing.T, conn net.Conn) string {
	t.Helper()
	if _, err := io.WriteString(conn, "}"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// Whoever is slow to send a body keeps no place from others, and is answered all the same when the body has come.
func TestSlowBodiesHoldNoPlace(t *testing.T) {
	read, entered, release := make(chan struct{}, 2), make(chan struct{}), make(chan struct{})
	rt := web.NewRouter()
	rt.Handle(http.MethodPost, "/", func(r *http.Request) (*web.Reply, error) {
		read <- struct{}{}
		_, err := web.RawBody(r, 100)
		return &web.Reply{Status: 204}, err
	})
	rt.Handle(http.MethodGet, "/", say(&web.Reply{Status: 204}))
	rt.Handle(http.MethodGet, "/long", func(*http.Request) (*web.Reply, error) {
		entered <- struct{}{}
		<-release
		return &web.Reply{Status: 204}, nil
	})
	s := serve(t, rt, web.Options{MaxInFlight: 1})
	free := func() bool { return s.send(t, http.MethodGet, "/", "").StatusCode == 204 }

	slow := s.dawdler(t)
	<-read
	eventually(t, "others have the place", free)
	if got := end(t, slow); !strings.HasPrefix(got, "HTTP/1.1 204 ") {
		t.Errorf("who was slow got %q", got)
	}
	eventually(t, "the place is free again", free)

	slow = s.dawdler(t)
	<-read
	eventually(t, "others have the place", free)
	held := make(chan error, 1)
	go func() {
		resp, err := http.Get(s.url + "/long")
		if err == nil {
			err = resp.Body.Close()
		}
		held <- err
	}()
	<-entered
	if got := end(t, slow); !strings.HasPrefix(got, "HTTP/1.1 503 ") || !strings.Contains(got, "Retry-After: 2") {
		t.Errorf("who was slow and finds no place got %q", got)
	}
	close(release)
	if err := <-held; err != nil {
		t.Error(err)
	}
	eventually(t, "the one place is free, and there is but one", free)
	for range 2 { // the place was given back once, not twice: one request at a time
		slow = s.dawdler(t)
		<-read
		if got := end(t, slow); !strings.HasPrefix(got, "HTTP/1.1 204 ") {
			t.Errorf("later on: %q", got)
		}
	}
}
