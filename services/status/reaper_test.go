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
