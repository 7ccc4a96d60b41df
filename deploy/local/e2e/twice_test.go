package e2e

import (
	"sync"
	"testing"
)

// toldTwice lets a worker say everything again, at once and later: one step, and everybody is told the truth.
func toldTwice(t *testing.T, s *suite) {
	r := s.create(t)
	if first, again := s.tell(t, r, "parsed", nil), s.tell(t, r, "parsed", nil); first.text("outcome") != "applied" || again.text("outcome") != "duplicate" {
		t.Errorf("parsed twice: %s, then %s", first.raw, again.raw)
	}
	s.confirm(t, r)
	outcomes := s.allAtOnce(t, r, 12)
	if outcomes["applied"] != 1 || outcomes["duplicate"] != 11 {
		t.Errorf("completed twelve times at once: %v, want one applied and eleven duplicate", outcomes)
	}
	ended := s.ask(t, "GET", r.self, nil).want(t, 200)
	late := s.tell(t, r, "failed", map[string]any{"manifest": map[string]any{"error_code": "timeout"}})
	if late.text("outcome") != "already_terminal" || late.body["continue"] != false {
		t.Errorf("failed after completed: %s", late.raw)
	}
	still := s.ask(t, "GET", r.self, nil).want(t, 200)
	if still.raw != ended.raw || still.header.Get("ETag") != ended.header.Get("ETag") {
		t.Errorf("a late word changed the run:\n%s\n%s", ended.raw, still.raw)
	}
	if n := s.jobs(r, "assemble"); n > 1 {
		t.Errorf("%d assemble jobs, want 1", n)
	}
	const stored = `SELECT count(*) FROM run_event WHERE run_id = $1 AND what = 'completed' AND outcome = `
	if applied, late := s.number(t, stored+`'applied'`, r.id), s.number(t, stored+`'duplicate'`, r.id); applied != 1 || late != 11 {
		t.Errorf("the timeline holds %d applied and %d duplicate, want 1 and 11", applied, late)
	}
}

// allAtOnce sends the same signed completed event n times side by side and counts the outcomes.
func (s *suite) allAtOnce(t *testing.T, r run, n int) map[string]int {
	t.Helper()
	body, header := s.word(t, r, "completed", r.result())
	outcomes := map[string]int{}
	var mu sync.Mutex
	var telling sync.WaitGroup
	for range n {
		telling.Go(func() {
			got, err := s.post(body, header.Clone())
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			outcomes[got.text("outcome")]++
		})
	}
	telling.Wait()
	return outcomes
}
