package app_test

import (
	"context"
	"encoding/json/v2"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/pkg/app"
)

func TestReadyzAsksItsDependencies(t *testing.T) {
	var postgres, nats atomic.Bool
	up := func(is *atomic.Bool) func(context.Context) error {
		return func(context.Context) error {
			if is.Load() {
				return nil
			}
			return errors.New("refused")
		}
	}
	s := start(t, app.Config{Health: app.NewHealth(
		app.Check{Name: "postgres", Critical: true, Ask: up(&postgres)},
		app.Check{Name: "nats", Ask: up(&nats)},
	)})
	for _, c := range []struct {
		postgres, nats bool
		status         int
		word           string
	}{
		{true, true, 200, "ready"},
		{true, false, 200, "degraded"},
		{false, true, 503, "unready"},
		{false, false, 503, "unready"},
	} {
		postgres.Store(c.postgres)
		nats.Store(c.nats)
		if status, body := get(s.ops + "/readyz"); status != c.status || body != `{"status":"`+c.word+`"}` {
			t.Errorf("postgres %t, nats %t: %d %s", c.postgres, c.nats, status, body)
		}
		if status, _ := get(s.ops + "/livez"); status != 200 {
			t.Errorf("livez asked somebody: %d", status)
		}
	}

	_, body := get(s.ops + "/readyz?verbose")
	type check struct {
		Name     string
		OK       bool
		Critical bool
		Error    string
	}
	var got struct {
		Status string
		Checks []check
	}
	if err := json.Unmarshal([]byte(body), &got, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	want := []check{{"postgres", false, true, "refused"}, {"nats", false, false, "refused"}}
	if diff := cmp.Diff(want, got.Checks); diff != "" {
		t.Error(diff)
	}
}

func TestReadyzDoesNotHangWithACheckThatDoes(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	s := start(t, app.Config{Health: app.NewHealth(app.Check{
		Name: "deaf", Critical: true, Timeout: 20 * time.Millisecond,
		Ask: func(context.Context) error { <-release; return nil },
	})})
	if status, body := get(s.ops + "/readyz?verbose"); status != 503 || !strings.Contains(body, "deadline exceeded") {
		t.Errorf("%d %s", status, body)
	}
}

func TestMetricsTellOfProcessAndBuild(t *testing.T) {
	s := start(t, app.Config{})
	status, body := get(s.ops + "/metrics")
	for _, name := range []string{"go_goroutines", "process_open_fds", "go_build_info"} {
		if !strings.Contains(body, "\n"+name) {
			t.Errorf("%d: no %s", status, name)
		}
	}
	if status, _ := get(s.url + "/metrics"); status != http.StatusNotFound {
		t.Errorf("the public port shows metrics: %d", status)
	}
}
