package e2e

import (
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
				if took > 3*time.Second {
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

// hintsWake looks at how late changes are seen. By its own looks alone a replica would take at least twice as long.
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
