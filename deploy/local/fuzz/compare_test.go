package fuzz

import (
	"database/sql"
	"io"
	"strings"
	"testing"
)

// Changes behind the answers' back must be found, or a run that finds nothing means nothing.
func TestWhatNoAnswerToldOfIsFound(t *testing.T) {
	s := start(t)
	db, err := sql.Open("postgres", s.Address().Postgres)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	c := Config{Stack: s, Requests: 900, Seed: 7, Out: io.Discard}
	report := newReport(c)
	w, err := newWorker(t.Context(), c, db, 1, report)
	if err != nil {
		t.Fatal(err)
	}
	if err := send(t.Context(), c, []*worker{w}); err != nil {
		t.Fatal(err)
	}
	if err := report.Err(); err != nil {
		t.Fatal(err)
	}
	if err := drained(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{
		`UPDATE wf2des SET screen_id = 'another' WHERE id = (SELECT min(id) FROM wf2des)`,
		`UPDATE code2wf SET updated_at = updated_at + interval '1 microsecond' WHERE id = (SELECT min(id) FROM code2wf)`,
		`INSERT INTO run_event (kind, run_id, seq, what, outcome, actor_kind, actor, to_state, attempt, version, at)
			SELECT 'wf2des', max(id), seq, 'failed', 'duplicate', 'worker', 'x', 'failed', 1, now(), now() FROM wf2des, generate_series(71, 79) AS seq GROUP BY seq`,
		`INSERT INTO outbox (destination, kind, run_id, attempt, stage, state, settled_at) SELECT 'jobs', 'wf2des', max(id), 1, 'parse', 'set_aside', now() FROM wf2des`,
		`DELETE FROM run_event WHERE run_id = (SELECT max(id) FROM code2wf)`,
	} {
		if _, err := db.ExecContext(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	if err := finish(t.Context(), c, db, []*worker{w}, report); err != nil {
		t.Fatal(err)
	}
	found := report.Err()
	for _, want := range []string{"screen_id is another", "updated_at is", "lines of the timeline is", "entries ever written", "lines of run_event",
		"invariant 1: a row has a maker", "invariant 11: no gap", "invariant 11: the timeline replays", "invariant 16: nothing waits"} {
		if found == nil || !strings.Contains(found.Error(), want) {
			t.Errorf("not found: %s", want)
		}
	}
}
