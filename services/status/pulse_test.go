package main

import (
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/store"
)

// Catches a worker that keeps reporting and loses its run, a report that is written each time, and a state without a deadline, or the
// designer's, that is written at all.
func TestProgressKeepsARunAlive(t *testing.T) {
	t.Parallel()
	e := listen(t)
	r, _ := e.reaper(lifecycle.Deadlines{lifecycle.Parsing: time.Hour, lifecycle.AwaitingConfirm: time.Hour}, false)
	pulses := func() (n int) {
		noError(t, e.SQL.GetContext(t.Context(), &n, `SELECT count(*) FROM run_pulse`))
		return n
	}
	run := e.silent(t, lifecycle.WF2Des, lifecycle.Parsing)
	mustTell(t, "the first report", e.say(t, whole(run, progress)), answered("applied", lifecycle.Parsing, 1, true))
	e.unchanged(t, "a report soon after", func() {
		mustTell(t, "the second", e.say(t, whole(run, progress)), answered("applied", lifecycle.Parsing, 1, true))
	})
	e.unchanged(t, "a scan", func() { noError(t, r.scan(t.Context())) })
	for kind, state := range map[lifecycle.Kind]lifecycle.State{lifecycle.Code2WF: lifecycle.Processing, lifecycle.WF2Des: lifecycle.AwaitingConfirm} {
		other := e.In(t, kind, state)
		mustTell(t, string(state), e.say(t, whole(other, progress)), answered("applied", state, 1, true))
	}
	if n := pulses(); n != 1 {
		t.Errorf("%d pulses were written, want 1", n)
	}
	e.SQL.MustExec(`UPDATE run_pulse SET heard_at = now() - interval '61 minutes'`)
	noError(t, r.scan(t.Context()))
	mustTell(t, "after the end", e.say(t, whole(run, progress)), answered("already_terminal", lifecycle.Failed, 1, false))
	r.forgotten = time.Time{}
	noError(t, r.scan(t.Context()))
	if n := pulses(); n != 0 {
		t.Errorf("%d pulses of ended runs are still there", n)
	}
}

// Catches a worker that is told to go on with a run that moved on while its word was noted.
func TestProgressWhileTheRunMovesOn(t *testing.T) {
	t.Parallel()
	e := listen(t)
	e.reaper(hour, false)
	run := e.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	tx := e.SQL.MustBegin()
	tx.MustExec(`UPDATE wf2des SET attempt = 2 WHERE id = $1`, run.ID)
	told := make(chan servicetest.Reply, 1)
	request := e.signed(t, whole(run, progress))
	go func() {
		reply, err := e.Try(request)
		noError(t, err)
		told <- reply
	}()
	servicetest.Eventually(t, "the word waits for the row", func() bool {
		var waiting int
		noError(t, e.SQL.GetContext(t.Context(), &waiting, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`))
		return waiting > 0
	})
	noError(t, tx.Commit())
	mustTell(t, "progress", <-told, answered("superseded", lifecycle.Parsing, 2, false))
	if _, reports := e.nerve.take(); len(reports) > 0 {
		t.Errorf("passed on: %v", reports)
	}
}

// Catches a pulse that counts as written although it was not.
func TestAPulseThatCouldNotBeWrittenIsTriedAgain(t *testing.T) {
	t.Parallel()
	e := listen(t)
	run := e.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	p := pulse{deadlines: hour}
	down, err := store.Open("postgres://127.0.0.1:1/none?sslmode=disable", store.Options{})
	noError(t, err)
	t.Cleanup(func() { down.Close() })
	if _, err := p.note(t.Context(), down, run); err == nil {
		t.Error("a pulse was noted in no database")
	}
	before := e.Content(t)["run_pulse"]
	if open, err := p.note(t.Context(), e.Store, run); !open || err != nil || e.Content(t)["run_pulse"] == before {
		t.Errorf("tried again: %t, %v; in the database: %s", open, err, e.Content(t)["run_pulse"])
	}
	run.Attempt = 2
	if open, err := p.note(t.Context(), e.Store, run); open || err != nil {
		t.Errorf("of an attempt that does not run: %t, %v", open, err)
	}
}

// Catches a memory that grows with every run, and one that no longer holds back what was just written.
func TestPulsesAreFewAndTheirMemoryIsBounded(t *testing.T) {
	t.Parallel()
	var p pulse
	for i := range 2 * pulsesMost {
		b := beat{attempt: i}
		if first, second := p.due(b, time.Hour), p.due(b, time.Hour); !first || second {
			t.Fatalf("beat %d: due %t, then %t", i, first, second)
		}
	}
	if len(p.noted) > pulsesMost {
		t.Errorf("%d are remembered", len(p.noted))
	}
	if !p.due(beat{attempt: 2*pulsesMost - 1}, 0) {
		t.Error("what is older than the time between two notes is not due")
	}
}
