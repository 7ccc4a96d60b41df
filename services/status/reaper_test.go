package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/store"
	"github.com/prometheus/client_golang/prometheus"
)

var hour = lifecycle.Deadlines{lifecycle.Parsing: time.Hour, lifecycle.AwaitingConfirm: time.Hour, lifecycle.Assembling: time.Hour,
	lifecycle.Processing: time.Hour}

// reaper is one of the ear's own service, with what it says.
func (e *ear) reaper(deadlines lifecycle.Deadlines, dry bool) (*reaper, *servicetest.Log) {
	log := &servicetest.Log{}
	e.server.pulse.deadlines = deadlines
	return newReaper(e.server, deadlines, dry, log.Logger(), prometheus.NewRegistry()), log
}

// silent is a run in state that changed two hours ago.
func (e *ear) silent(t *testing.T, kind lifecycle.Kind, state lifecycle.State) lifecycle.Run {
	t.Helper()
	run := e.In(t, kind, state)
	e.SQL.MustExec(`UPDATE `+string(kind)+` SET updated_at = now() - interval '2 hours' WHERE id = $1`, run.ID)
	return run
}

// Catches a run that stays open past its deadline, one that is ended without a deadline or before it, a sentence that blames the wrong
// one, an ending under another name, a node that stays blocked, and a world that is not told.
func TestReaperEndsWhatIsSilent(t *testing.T) {
	t.Parallel()
	e := listen(t)
	const slow, forgotten = "The generation took too long and was stopped. Please try again.",
		"Nobody confirmed in time, so the generation was closed. Please start it again."
	sentences := map[string]string{}
	for state, sentence := range map[lifecycle.State]string{lifecycle.Parsing: slow, lifecycle.AwaitingConfirm: forgotten, lifecycle.Assembling: slow} {
		sentences[e.silent(t, lifecycle.WF2Des, state).ID] = sentence
	}
	sentences[e.silent(t, lifecycle.Code2WF, lifecycle.Processing).ID] = slow
	e.In(t, lifecycle.WF2Des, lifecycle.Parsing) // in time
	off, _ := e.reaper(lifecycle.Deadlines{}, false)
	e.unchanged(t, "a reaper without deadlines", func() { noError(t, off.scan(t.Context())) })
	r, _ := e.reaper(hour, false)
	e.nerve.take()
	noError(t, r.scan(t.Context()))
	told, _ := e.nerve.take()
	if len(told) != len(sentences) {
		t.Errorf("told of %v, want %d runs", told, len(sentences))
	}
	for _, run := range told {
		row, line := e.Row(t, run), e.LastLine(t, run)
		if row["status"] != "2" || row["error_message"] != sentences[run.ID] || row["updated_by"] != platform.UserWorker {
			t.Errorf("the row: %v", row)
		}
		if line.What != "failed" || line.Outcome != "applied" || line.By != "backend" || line.Actor != platform.UserWorker {
			t.Errorf("the line: %+v", line)
		}
	}
	e.unchanged(t, "a second scan", func() { noError(t, r.scan(t.Context())) })
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

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

// Catches a dry run that ends something, that keeps silent about it, or that clears away.
func TestDryRunOnlyTells(t *testing.T) {
	t.Parallel()
	e := listen(t)
	run := e.silent(t, lifecycle.Code2WF, lifecycle.Processing)
	e.SQL.MustExec(`INSERT INTO run_pulse VALUES ('wf2des', 'gone', 1, now())`)
	r, log := e.reaper(hour, true)
	e.unchanged(t, "a dry run", func() { noError(t, r.scan(t.Context())) })
	if said := log.String(); !strings.Contains(said, run.ID) || !strings.Contains(said, "would be failed") {
		t.Errorf("it says %q", said)
	}
}

// Two reapers that have both seen the same runs end each of them once, and each tells the world of its own.
func TestTwoReapers(t *testing.T) {
	t.Parallel()
	e := listen(t)
	for range 40 {
		e.silent(t, lifecycle.Code2WF, lifecycle.Processing)
	}
	ended := make(chan error, 2)
	for range 2 {
		r, _ := e.reaper(hour, false)
		go func() { ended <- r.scan(t.Context()) }()
	}
	noError(t, <-ended)
	noError(t, <-ended)
	if told, _ := e.nerve.take(); len(told) != 40 {
		t.Errorf("told of %d ends, want 40", len(told))
	}
	var lines int
	noError(t, e.SQL.GetContext(t.Context(), &lines, `SELECT count(*) FROM run_event WHERE what = 'failed'`))
	if lines != 40 {
		t.Errorf("%d lines of an end, want 40", lines)
	}
}

// Catches a run that nobody can end, and that keeps the reaper from all the others.
func TestOneRunThatCannotEndStopsNobody(t *testing.T) {
	t.Parallel()
	e := listen(t)
	stuck := e.silent(t, lifecycle.Code2WF, lifecycle.Processing)
	other := e.silent(t, lifecycle.Code2WF, lifecycle.Processing)
	e.SQL.MustExec(`ALTER TABLE code2wf ADD CONSTRAINT stuck CHECK (id <> '` + stuck.ID + `' OR status = '0') NOT VALID`)
	r, _ := e.reaper(hour, false)
	if r.scan(t.Context()) == nil {
		t.Error("a run could not be ended, and nobody hears of it")
	}
	if row := e.Row(t, other.Ref); row["status"] != "2" {
		t.Errorf("the other one: %v", row)
	}
}

// Catches a reaper that ends when PostgreSQL is away, or that does not end when it should.
func TestReaperRunsUntilItIsToldToStop(t *testing.T) {
	t.Parallel()
	e := listen(t)
	down, err := store.Open("postgres://127.0.0.1:1/none?sslmode=disable", store.Options{})
	noError(t, err)
	t.Cleanup(func() { down.Close() })
	log := &servicetest.Log{}
	r := newReaper(&server{store: down, account: e.server.account, nerve: e.nerve}, hour, false, log.Logger(), prometheus.NewRegistry())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.run(ctx) }()
	servicetest.Eventually(t, "it says that it cannot look", func() bool { return strings.Contains(log.String(), "trying again") })
	stop()
	noError(t, <-ended)
}

// The service as a whole: a silent run ends, and without deadlines it does not, which is what the seeds say.
func TestRunReaps(t *testing.T) {
	t.Parallel()
	w := servicetest.New(t)
	e := &ear{World: w}
	run1 := e.silent(t, lifecycle.Code2WF, lifecycle.Processing)
	run2 := e.silent(t, lifecycle.WF2Des, lifecycle.AwaitingConfirm)
	s := w.Start(t, run, w.Environment(t, map[string]string{"WEBHOOK_SECRETS": secret(), "PROCESSING_DEADLINE": "1h"}))
	servicetest.Eventually(t, "the silent run is failed", func() bool { return e.Row(t, run1.Ref)["status"] == "2" })
	if row := e.Row(t, run2.Ref); row["status"] != "0" {
		t.Errorf("a run that waits for a person, without a deadline: %v", row)
	}
	servicetest.Eventually(t, "the metric tells of it", func() bool {
		response, err := http.Get(s.Ops + "/metrics")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return strings.Contains(string(body), `framerun_reaped_total{result="failed"} 1`) && strings.Contains(string(body), "framerun_overdue_runs ")
	})
	s.Stop()
	noError(t, s.End())
}
