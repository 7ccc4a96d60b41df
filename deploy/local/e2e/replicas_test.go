package e2e

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"framerun.dev/deploy/local/stack"
)

// queries are the two processes that service query runs as.
var queries = []string{"query", "query-2"}

// TestReplicas reads from two replicas of query at once, through the gateway, which asks them in turn: with hints, without any, with
// false ones, and while a replica goes.
func TestReplicas(t *testing.T) {
	t.Parallel()
	s := start(t, stack.Config{Worker: "none", Twice: []string{"query"}})
	for _, story := range []struct {
		name string
		tell func(*testing.T, *suite)
	}{
		{"an iframe may read every answer", iframeReads},
		{"nobody reads backwards", neverBackwards},
		{"streams hop from one to the other", hopping},
		{"hints wake whoever waits", hintsWake},
		{"without NATS", readingWithoutNATS},
		{"forged hints", forgedHints},
		{"one is killed while requests wait there", killedUnderWaiters},
		{"one is stopped while requests wait there", stoppedUnderWaiters},
	} {
		t.Run(story.name, func(t *testing.T) { story.tell(t, s) })
	}
}

// TestReplicasThatDisagree reads from two replicas of which one hears no hint, so that it nearly always knows less than the other.
func TestReplicasThatDisagree(t *testing.T) {
	t.Parallel()
	deaf := map[string]string{"NATS_URL": "nats://127.0.0.1:1"}
	s := start(t, stack.Config{Worker: "none", Twice: []string{"query"}, Env: map[string]map[string]string{"query-2": deaf}})
	t.Run("nobody reads backwards", func(t *testing.T) { neverBackwards(t, s) })
	t.Run("streams hop from one to the other", func(t *testing.T) { hopping(t, s) })
}

// readingWithoutNATS reads as before while no hint arrives, and sees hints work again when NATS is back.
func readingWithoutNATS(t *testing.T, s *suite) {
	bringBack := s.stopNATS(t)
	t.Run("nobody reads backwards", func(t *testing.T) { neverBackwards(t, s) })
	t.Run("streams hop from one to the other", func(t *testing.T) { hopping(t, s) })
	t.Run("whoever waits is answered by the next look", func(t *testing.T) {
		for range 3 {
			for _, took := range s.wakings(t) {
				if took > 2*time.Second {
					t.Errorf("the change was seen %s late", took)
				}
			}
		}
	})
	bringBack()
	for _, name := range append([]string{"intake", "status", "interaction"}, queries...) {
		eventually(t, 10*time.Second, name+" has NATS back", func() bool { return s.missesNothing(name) })
	}
	t.Run("hints wake whoever waits", func(t *testing.T) { hintsWake(t, s) })
}

// hintsWake looks at how late changes are seen. By its own looks alone a replica would take a quarter of a second in the middle.
func hintsWake(t *testing.T, s *suite) {
	var took []time.Duration
	for range 20 {
		took = append(took, s.wakings(t)...)
	}
	slices.Sort(took)
	if median := took[len(took)/2]; median > 125*time.Millisecond {
		t.Errorf("of %d changes the median was seen %s late: nobody was woken", len(took), median)
	}
}

// wakings lets one request wait at each replica for the same change, and tells how much later than the worker they hear of it.
func (s *suite) wakings(t *testing.T) (took []time.Duration) {
	t.Helper()
	r := s.create(t)
	var held []*waiting
	for _, name := range queries {
		held = append(held, s.hold(t, 1, s.at.Services[name].URL, r))
	}
	s.tell(t, r, "parsed", nil)
	told := time.Now()
	for _, w := range held {
		a := w.answer(t)
		if a.status != 200 || stateOf(a.reply) != "awaiting_confirm" || a.header.Get("Preference-Applied") != "wait=25" {
			t.Errorf("the waiting GET says %d %s", a.status, a.raw)
		}
		took = append(took, max(0, a.at.Sub(told)))
	}
	return took
}

// waiting are requests that wait for news.
type waiting struct {
	run     run
	answers chan answer
}

type answer struct {
	reply
	err error
	at  time.Time
}

// hold sends n requests that wait for another version of r than its first, and returns when the replicas hold them.
func (s *suite) hold(t *testing.T, n int, origin string, r run) *waiting {
	t.Helper()
	w, before := &waiting{r, make(chan answer, n)}, s.inFlightAtAll(t)
	for range n {
		go func() {
			got, err := s.try("GET", origin+r.self, nil, "Prefer", "wait=25", "If-None-Match", r.etag)
			w.answers <- answer{got, err, time.Now()}
		}()
	}
	eventually(t, 5*time.Second, "the requests wait", func() bool { return s.inFlightAtAll(t) >= before+n })
	return w
}

// answer is the next that comes.
func (w *waiting) answer(t *testing.T) answer {
	t.Helper()
	select {
	case a := <-w.answers:
		if a.err != nil {
			t.Fatal(a.err)
		}
		return a
	case <-time.After(10 * time.Second):
		t.Fatal("who waits is not answered")
	}
	return answer{}
}

// none checks that nobody was answered yet.
func (w *waiting) none(t *testing.T) {
	t.Helper()
	if n := len(w.answers); n > 0 {
		t.Errorf("%d requests were answered although nothing has changed: %s", n, (<-w.answers).raw)
	}
}

// inFlightAtAll is how many requests the replicas hold; one that is down holds none.
func (s *suite) inFlightAtAll(t *testing.T) (n int) {
	t.Helper()
	for _, name := range queries {
		if held := s.metric(t, name, `framerun_http_requests_in_flight{service="query"}`); !math.IsNaN(held) {
			n += int(held)
		}
	}
	return n
}

// metric is the sum of a process's metrics whose names and labels begin like this; not a number while it is down.
func (s *suite) metric(t *testing.T, process, begin string) (sum float64) {
	t.Helper()
	res, err := http.Get(s.at.Services[process].Ops + "/metrics")
	if err != nil {
		return math.NaN()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return math.NaN()
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, begin) {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += value
	}
	return sum
}

// missesNothing reports whether a process is ready and misses nothing.
func (s *suite) missesNothing(process string) bool {
	got, err := s.try("GET", s.at.Services[process].Ops+"/readyz", nil)
	return err == nil && got.text("status") == "ready"
}

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
