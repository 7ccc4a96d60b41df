package e2e

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// termination sends SIGTERM to each service while it is in the middle of a request.
func termination(t *testing.T, s *suite) {
	waiting, confirmed, cancelled := s.create(t), s.create(t), s.create(t)
	heard, signed := s.word(t, confirmed, "parsed", nil)
	for _, c := range []struct {
		service, method, path, body string
		header                      http.Header
		status                      int
	}{
		{"intake", "POST", collection, `{"figmaFileKey":"itMrdXTfcIHTHbSGK0Ivox","wfNodeId":"78:1","screenId":"x"}`, nil, 201},
		{"status", "POST", "/v1/ai-status", string(heard), signed, 200},
		{"interaction", "POST", cancelled.self + "/cancel", `{}`, nil, 200},
		{"query", "GET", waiting.self, "", http.Header{"Prefer": {"wait=25"}, "If-None-Match": {waiting.etag}}, 304},
	} {
		t.Run(c.service, func(t *testing.T) {
			req, err := s.request(c.method, s.at.Services[c.service].URL+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			for name, values := range c.header {
				req.Header[name] = values
			}
			got := s.terminateDuring(t, c.service, req, c.body)
			if got.status != c.status {
				t.Errorf("status %d, want %d: %s", got.status, c.status, got.raw)
			}
		})
	}
	if state := s.state(t, confirmed); state != "awaiting_confirm" {
		t.Errorf("the worker's word was answered 200, and the run is %s", state)
	}
	if state := s.state(t, cancelled); state != "cancelled" {
		t.Errorf("the cancellation was answered 200, and the run is %s", state)
	}
}

// terminateDuring sends half of the request's body, then SIGTERM, then the rest, and returns the answer. The service must end with
// exit status 0. A request without a body is one that waits for news: it must be answered early.
func (s *suite) terminateDuring(t *testing.T, service string, req *http.Request, body string) reply {
	t.Helper()
	sender := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}}
	rest, write := io.Pipe()
	if body != "" {
		req.ContentLength = int64(len(body))
		req.Body = io.NopCloser(io.MultiReader(strings.NewReader(body[:len(body)/2]), rest))
	}
	type outcome struct {
		reply reply
		err   error
	}
	answer := make(chan outcome, 1)
	go func() {
		r, err := answered(sender.Do(req))
		answer <- outcome{r, err}
	}()
	eventually(t, 5*time.Second, "the request is in flight", func() bool { return s.inFlight(t, service) })

	began := time.Now()
	pid := s.signal(t, service, syscall.SIGTERM)
	eventually(t, 5*time.Second, service+" says that it is not ready any more", func() bool { return !s.ready(service) })
	if body != "" {
		io.WriteString(write, body[len(body)/2:])
	}
	write.Close()
	got := <-answer
	if got.err != nil {
		t.Fatalf("the request in flight was not answered: %v", got.err)
	}
	eventually(t, 10*time.Second, service+" ends with exit status 0", func() bool { return s.log.has(service + " ended (exit status 0)") })
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("draining took %s", took)
	}
	s.back(t, service, pid)
	return got.reply
}

func (s *suite) inFlight(t *testing.T, service string) bool {
	t.Helper()
	res, err := http.Get(s.at.Services[service].Ops + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(text, []byte(`framerun_http_requests_in_flight{service="`+service+`"} 1`))
}
