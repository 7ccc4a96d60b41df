package servicetest

import (
	"encoding/json/v2"
	"fmt"
	"strings"
	"testing"

	"framerun.dev/pkg/lifecycle"
)

// tables are all that the suite keeps.
var tables = []string{"wf2des", "code2wf", "run_event", "outbox", "idempotency_key", "run_pulse"}

// Row is a run's row as PostgreSQL itself writes it in JSON: enums are the seeds' digits, times are in UTC.
func (w *World) Row(t testing.TB, run lifecycle.Ref) map[string]any {
	t.Helper()
	var text []byte
	err := w.SQL.GetContext(t.Context(), &text, fmt.Sprintf(`SELECT to_jsonb(r) FROM %s r WHERE id = $1`, run.Kind), run.ID)
	if err != nil {
		t.Fatalf("reading the row of %s %s: %v", run.Kind, run.ID, err)
	}
	var row map[string]any
	if err := json.Unmarshal(text, &row); err != nil {
		t.Fatal(err)
	}
	return row
}

// Line is one line of a run's timeline.
type Line struct {
	What        string  `db:"what"`
	Outcome     string  `db:"outcome"`
	By          string  `db:"actor_kind"`
	Actor       string  `db:"actor"`
	From        *string `db:"from_state"`
	To          string  `db:"to_state"`
	Attempt     int     `db:"attempt"`
	Data        string  `db:"data"`
	Traceparent *string `db:"traceparent"`
}

// Timeline reads the lines of a run, oldest first. They are numbered 1, 2, 3 … without a gap, or the test fails.
func (w *World) Timeline(t testing.TB, run lifecycle.Ref) []Line {
	t.Helper()
	var lines []struct {
		Line
		Seq int `db:"seq"`
	}
	err := w.SQL.SelectContext(t.Context(), &lines, `SELECT seq, what, outcome, actor_kind, actor, from_state, to_state, attempt,
		data::text AS data, traceparent FROM run_event WHERE kind = $1 AND run_id = $2 ORDER BY seq`, run.Kind, run.ID)
	if err != nil {
		t.Fatal(err)
	}
	timeline := make([]Line, len(lines))
	for i, l := range lines {
		timeline[i] = l.Line
		if l.Seq != i+1 {
			t.Errorf("line %d of the timeline has number %d", i+1, l.Seq)
		}
	}
	return timeline
}

// LastLine is the newest line of a run's timeline.
func (w *World) LastLine(t testing.TB, run lifecycle.Ref) Line {
	t.Helper()
	lines := w.Timeline(t, run)
	if len(lines) == 0 {
		t.Fatalf("%s %s has no timeline", run.Kind, run.ID)
	}
	return lines[len(lines)-1]
}

// Letter is one entry of the outbox.
type Letter struct {
	Destination string  `db:"destination"`
	Stage       *string `db:"stage"` // of jobs
	Seq         *int    `db:"seq"`   // of events: the timeline's line
	Attempt     int     `db:"attempt"`
	State       string  `db:"state"`
	Traceparent *string `db:"traceparent"`
}

// Outbox reads what is to be told of a run, oldest first.
func (w *World) Outbox(t testing.TB, run lifecycle.Ref) []Letter {
	t.Helper()
	var letters []Letter
	err := w.SQL.SelectContext(t.Context(), &letters, `SELECT destination, stage, seq, attempt, state, traceparent FROM outbox
		WHERE kind = $1 AND run_id = $2 ORDER BY id`, run.Kind, run.ID)
	if err != nil {
		t.Fatal(err)
	}
	return letters
}

// Told writes letters in short, as "jobs parse" and "events 1".
func Told(letters []Letter) []string {
	var short []string
	for _, l := range letters {
		switch {
		case l.Stage != nil:
			short = append(short, l.Destination+" "+*l.Stage)
		case l.Seq != nil:
			short = append(short, fmt.Sprint(l.Destination, " ", *l.Seq))
		}
	}
	return short
}

// Content is a digest of every table, by name: the number of rows and a checksum of all that is in them. Two that are equal mean
// that nothing changed.
func (w *World) Content(t testing.TB) map[string]string {
	t.Helper()
	var each []string
	for _, table := range tables {
		each = append(each, fmt.Sprintf(`SELECT '%[1]s' AS name,
			count(*) || ' ' || coalesce(md5(string_agg(r::text, E'\n' ORDER BY r::text)), '') AS digest FROM %[1]s r`, table))
	}
	var digests []struct {
		Name   string `db:"name"`
		Digest string `db:"digest"`
	}
	if err := w.SQL.SelectContext(t.Context(), &digests, strings.Join(each, " UNION ALL ")); err != nil {
		t.Fatal(err)
	}
	content := map[string]string{}
	for _, d := range digests {
		content[d.Name] = d.Digest
	}
	return content
}
