package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
	"uuid"

	"github.com/nats-io/nats.go"
)

// forgedHints lets somebody say on NATS whatever they like. It answers nobody, stores nothing and stops nothing.
func forgedHints(t *testing.T, s *suite) {
	runs := []run{s.create(t), s.create(t), s.create(t)}
	var held []*waiting
	for _, r := range runs {
		held = append(held, s.hold(t, 4, s.at.Gateway, r))
	}
	before := s.sizes(t)
	s.forge(t, 60_000, runs)
	for i, r := range runs {
		held[i].none(t)
		got := s.ask(t, "GET", r.self, nil).want(t, 200)
		if p, ok := got.body["progress"].(map[string]any); ok {
			t.Errorf("a forged progress is shown: %v", p)
		}
		s.tell(t, r, "parsed", nil)
		for range 4 {
			if a := held[i].answer(t); a.status != 200 || stateOf(a.reply) != "awaiting_confirm" {
				t.Errorf("after the flood a waiting GET says %d %s", a.status, a.raw)
			}
		}
	}
	for i, after := range s.sizes(t) {
		if grown := after.resident - before[i].resident; grown > 48<<20 || after.goroutines > before[i].goroutines+10 {
			t.Errorf("%s has grown by %.0f bytes, and from %.0f goroutines to %.0f", queries[i], grown, before[i].goroutines, after.goroutines)
		}
	}
	hintsWake(t, s)
}

// size is what a process takes up.
type size struct{ resident, goroutines float64 }

func (s *suite) sizes(t *testing.T) (all []size) {
	t.Helper()
	for _, name := range queries {
		all = append(all, size{s.metric(t, name, "process_resident_memory_bytes "), s.metric(t, name, "go_goroutines ")})
	}
	return all
}

// forge publishes n false words: on runs that are there, on such as never were, and some that nobody can read. It returns when the
// server has them all.
func (s *suite) forge(t *testing.T, n int, runs []run) {
	t.Helper()
	conn, err := nats.Connect(s.at.NATS)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var odd []message
	for _, r := range runs {
		odd = append(odd, oddities(r)...)
	}
	for i := range n / 4 {
		unknown := uuid.NewV7().String()
		for _, m := range []message{
			{"framerun.run.changed.wf2des." + runs[i%len(runs)].id, ""},
			{"framerun.run.changed.wf2des." + unknown, ""},
			{"framerun.run.progress.wf2des." + unknown, progressOf(never, `"percent":1,"message":"`+strings.Repeat("漢", 200)+`"`)},
			odd[i%len(odd)],
		} {
			if err := conn.Publish(m.subject, []byte(m.data)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := conn.FlushTimeout(20 * time.Second); err != nil {
		t.Fatal(err)
	}
}

type message struct{ subject, data string }

// never is a version that no run will have.
var never = time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC)

// progressOf is a report on a version.
func progressOf(version time.Time, what string) string {
	return fmt.Sprintf(`{"version":%q,"at":"2026-12-01T00:00:00Z",%s}`, version.Format(time.RFC3339Nano), what)
}

// oddities are words on a run, as it is when it is made, that no service says.
func oddities(r run) []message {
	id, version := r.id, time.UnixMicro(versionOf(r.etag)).UTC()
	const changed, progress = "framerun.run.changed.", "framerun.run.progress.wf2des."
	return []message{
		{changed + "wf2des", ""},
		{changed + "code2wf." + id, ""}, // of the other kind
		{changed + "des2wf." + id, ""},
		{changed + "wf2des." + id + ".x", ""},
		{changed + "wf2des." + strings.ToUpper(id), "x"},
		{changed + "wf2des.{" + id + "}", ""},
		{changed + "wf2des.'OR/**/true--", ""},
		{changed + "wf2des." + strings.Repeat("x", 3000), strings.Repeat("x", 100)},
		{progress + id, "{"},
		{progress + id, "null"},
		{progress + id, `{"version":"yesterday","at":"today","percent":"half"}`},
		{progress + id, progressOf(never, `"percent":50,"message":"soon"`)},
		{progress + id, progressOf(version, `"percent":1e308`)},
		{progress + id, progressOf(version, `"message":"\u0000\u202e"`)},
		{progress + id, strings.Repeat("x", 10_000)},
		{progress + id + ".x", progressOf(version, `"percent":50`)},
	}
}

// crowd is how many wait while a replica goes: more than the gateway has connections left over from before. Who waits on such a
// one is asked for again by the gateway itself, and notices nothing.
const crowd = 100

// killedUnderWaiters kills one replica. Its clients are told to ask again, do so, and hear the news with the others.
func killedUnderWaiters(t *testing.T, s *suite) {
	r := s.create(t)
	w := s.hold(t, crowd, s.at.Gateway, r)
	pid := s.signal(t, "query-2", syscall.SIGKILL)
	eventually(t, 5*time.Second, "all who waited there are told or wait elsewhere", func() bool { return len(w.answers)+s.inFlightAtAll(t) == crowd })
	sentAway := len(w.answers)
	for range sentAway {
		a := w.answer(t)
		if a.status != 503 || a.text("code") != "unavailable" {
			t.Errorf("who waited there is told %d %s", a.status, a.raw)
		}
		readable(t, "killed", a.header, []string{"Retry-After", "X-Request-Id"})
	}
	w.hearTheNews(t, s, sentAway)
	s.back(t, "query-2", pid)
}

// stoppedUnderWaiters stops one replica as the coming of a new version does. Its clients are answered early, that nothing has changed.
func stoppedUnderWaiters(t *testing.T, s *suite) {
	r := s.create(t)
	w := s.hold(t, crowd, s.at.Gateway, r)
	began := time.Now()
	pid := s.signal(t, "query-2", syscall.SIGTERM)
	for range crowd / 2 {
		a := w.answer(t)
		if a.status != 304 || a.header.Get("ETag") != r.etag || a.header.Get("Preference-Applied") != "wait=25" {
			t.Errorf("who waited there is told %d %v %s", a.status, a.header, a.raw)
		}
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("who waited there was answered after %s", took)
	}
	w.hearTheNews(t, s, crowd/2)
	eventually(t, 10*time.Second, "the replica ends in good order", func() bool { return s.log.has("query-2 ended (exit status 0)") })
	s.back(t, "query-2", pid)
}

// hearTheNews lets those who were sent away ask again, without a pause, and checks that the whole crowd is told of the next step.
func (w *waiting) hearTheNews(t *testing.T, s *suite, sentAway int) {
	t.Helper()
	if sentAway == 0 {
		t.Error("nobody was sent away: nothing is shown")
	}
	w.none(t)
	again := s.hold(t, sentAway, s.at.Gateway, w.run)
	s.tell(t, w.run, "parsed", nil)
	for i := range crowd {
		from := w
		if i < sentAway {
			from = again
		}
		if a := from.answer(t); a.status != 200 || stateOf(a.reply) != "awaiting_confirm" {
			t.Errorf("the waiting GET says %d %s", a.status, a.raw)
		}
	}
}
