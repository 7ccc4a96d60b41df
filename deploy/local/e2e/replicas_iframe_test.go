package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// iframeReads asks as a plugin's iframe does, whose origin is null, and checks that the browser would let it read the answer and
// the headers that it works with.
func iframeReads(t *testing.T, s *suite) {
	open, ended := s.create(t), s.create(t)
	s.ask(t, "POST", ended.self+"/cancel", nil).want(t, 200)
	for range 2 { // both replicas
		for _, c := range []struct {
			about  string
			status int
			r      run
			wish   []string
			shows  string // of the headers that it must be able to read
		}{
			{"a run", 200, open, nil, "ETag Retry-After"},
			{"a run that it knows", 304, open, []string{"If-None-Match", open.etag}, "ETag Retry-After"},
			{"news", 200, ended, []string{"If-None-Match", ended.etag, "Prefer", "wait=5"}, "ETag Preference-Applied"},
			{"a wait in vain", 304, open, []string{"If-None-Match", open.etag, "Prefer", "wait=1"}, "ETag Retry-After Preference-Applied"},
			{"a stream", 200, ended, []string{"Accept", "text/event-stream"}, ""},
			{"a stream of what it has seen", 204, ended, []string{"Accept", "text/event-stream", "Last-Event-ID", "2"}, ""},
			{"a run that is not there", 404, run{self: collection + "/0192f0c1-2d3e-7f40-8a5b-6c7d8e9fa0b1"}, nil, ""},
		} {
			got := s.ask(t, "GET", c.r.self, nil, append(c.wish, "Origin", "null")...)
			if got.status != c.status {
				t.Errorf("%s: %d %s; want %d", c.about, got.status, got.raw, c.status)
			}
			readable(t, c.about, got.header, strings.Fields(c.shows+" X-Request-Id"))
		}
		preflight := s.ask(t, "OPTIONS", open.self, nil, "Origin", "null", "Access-Control-Request-Method", "GET").want(t, 204).header
		for _, name := range []string{"Authorization", "If-None-Match", "Prefer", "Last-Event-ID"} {
			if !strings.Contains(preflight.Get("Access-Control-Allow-Headers"), name) {
				t.Errorf("a page may not send %s: %v", name, preflight)
			}
		}
	}
}

// readable checks that a page of any origin may read the answer, and these headers, each of which must stand there once: of two
// Access-Control-Allow-Origin a browser takes none.
func readable(t *testing.T, about string, header http.Header, names []string) {
	t.Helper()
	exposed := strings.Split(header.Get("Access-Control-Expose-Headers"), ", ")
	for _, name := range names {
		if len(header.Values(name)) != 1 || !slices.Contains(exposed, name) {
			t.Errorf("%s: %s is %q, and what may be read is %q", about, name, header.Values(name), exposed)
		}
	}
	origins, credentials := fmt.Sprint(header.Values("Access-Control-Allow-Origin")), header.Values("Access-Control-Allow-Credentials")
	if origins != "[*]" || credentials != nil {
		t.Errorf("%s: allowed are origins %s, credentials %v", about, origins, credentials)
	}
}
