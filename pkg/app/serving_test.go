package app_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"
	"time"

	"framerun.dev/pkg/app"
)

// patience is how long a test waits for what should come at once.
const patience = 10 * time.Second

// freeAddress is a loopback address that nobody listens on, below the ports that outgoing connections take.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no free port between 20000 and 32000")
	return ""
}

// service is a Run that a test has started in its own process.
type service struct {
	url, ops string
	stop     context.CancelFunc
	ended    chan error
}

// start runs c on free ports and returns when it answers. Whatever the test does, it is over when the test is.
func start(t *testing.T, c app.Config) *service {
	t.Helper()
	c.Name, c.Listen, c.OpsListen = "test", freeAddress(t), freeAddress(t)
	c.Logger = app.NewLogger(t.Output(), "test", 0)
	c.Metrics = app.NewRegistry()
	if c.Health == nil {
		c.Health = app.NewHealth()
	}
	if c.Handler == nil {
		c.Handler = http.NotFoundHandler()
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &service{url: "http://" + c.Listen, ops: "http://" + c.OpsListen, stop: cancel, ended: make(chan error, 1)}
	done := make(chan struct{})
	go func() { s.ended <- app.Run(ctx, c); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	eventually(t, "the ops port answers", func() bool { status, _ := get(s.ops + "/livez"); return status == http.StatusOK })
	return s
}

// end waits for Run's word.
func (s *service) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-s.ended:
		return err
	case <-time.After(patience):
		t.Fatal("Run did not return")
		return nil
	}
}

// get fetches a page on a connection of its own; status 0 means that no answer came.
func get(url string) (status int, body string) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); !holds(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
