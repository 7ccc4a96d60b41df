package main

import (
	"context"
	"log/slog"
	"testing"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/store"
	"github.com/google/go-cmp/cmp"
)

// strand sets the run's newest job aside, as the relay does with what SQS will never take.
func (e *ear) strand(t *testing.T, run lifecycle.Run) {
	t.Helper()
	e.SQL.MustExec(`UPDATE outbox SET state = 'set_aside', settled_at = now(), last_error = 'InvalidMessageContents: #xFFFF'
WHERE id = (SELECT max(id) FROM outbox WHERE run_id = $1 AND destination = 'jobs')`, run.ID)
}

// Catches a run that waits for ever for a worker who was never told, one that is ended although it does not wait for that job, and
// a cause that reaches the client.
func TestStrandedRunsFail(t *testing.T) {
	t.Parallel()
	e := listen(t)
	var waiting, others []lifecycle.Run
	for kind, state := range map[lifecycle.Kind]lifecycle.State{lifecycle.WF2Des: lifecycle.Parsing, lifecycle.Code2WF: lifecycle.Processing} {
		waiting = append(waiting, e.In(t, kind, state))
		newer := e.In(t, kind, state)
		e.SQL.MustExec(`UPDATE `+string(kind)+` SET attempt = 2 WHERE id = $1`, newer.ID)
		others = append(others, newer, e.In(t, kind, lifecycle.Completed), e.In(t, kind, lifecycle.Failed))
	}
	waiting = append(waiting, e.In(t, lifecycle.WF2Des, lifecycle.Assembling))
	others = append(others, e.In(t, lifecycle.WF2Des, lifecycle.Cancelled))
	untouched := e.In(t, lifecycle.WF2Des, lifecycle.Parsing) // its job just has not left yet
	rows := map[string]map[string]any{}
	for _, run := range append(append([]lifecycle.Run{untouched}, waiting...), others...) {
		rows[run.ID] = e.Row(t, run.Ref)
		if run.ID != untouched.ID {
			e.strand(t, run)
		}
	}
	if err := e.server.failStrandedOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, run := range append(others, untouched) {
		if diff := cmp.Diff(rows[run.ID], e.Row(t, run.Ref)); diff != "" {
			t.Errorf("a %s run in %s changed:\n%s", run.Kind, run.State, diff)
		}
	}
	for _, run := range waiting {
		row, line := e.Row(t, run.Ref), e.LastLine(t, run.Ref)
		if row["status"] != "2" || row["error_message"] != "The request could not be handed to a worker. Please start the generation again." ||
			row["updated_by"] != platform.UserWorker || row["attempt"] != 1. {
			t.Errorf("the row: %v", row)
		}
		if line.What != "failed" || line.Outcome != "applied" || line.By != "backend" || line.Actor != platform.UserWorker || line.To != "failed" {
			t.Errorf("the line: %+v", line)
		}
	}
	if told, _ := e.nerve.take(); len(told) != len(waiting) {
		t.Errorf("told of %v", told)
	}
	e.unchanged(t, "a second look", func() {
		if err := e.server.failStrandedOnce(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Catches a look that is neither woken nor taken by itself, that ends when PostgreSQL is away, or that does not end when it should.
func TestFailStrandedLooksAndWakes(t *testing.T) {
	t.Parallel()
	e := listen(t)
	wake := make(chan struct{}, 1)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	down, err := store.Open("postgres://127.0.0.1:1/none?sslmode=disable", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { down.Close() })
	unlucky := &server{store: down, account: e.server.account, nerve: e.nerve}
	if unlucky.failStrandedOnce(ctx) == nil {
		t.Error("a look at no database went well")
	}
	go func() { ended <- e.server.failStranded(ctx, wake, slog.New(slog.DiscardHandler)) }()
	failed := func(run lifecycle.Run) func() bool {
		return func() bool { return e.Row(t, run.Ref)["status"] == "2" }
	}
	run := e.In(t, lifecycle.Code2WF, lifecycle.Processing)
	e.strand(t, run)
	servicetest.Eventually(t, "the run is failed without a hint", failed(run))
	run = e.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	e.strand(t, run)
	wake <- struct{}{}
	servicetest.Eventually(t, "the run is failed", failed(run))
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Catches a service that says it is ready although no worker's word could be stored.
func TestAccountKnown(t *testing.T) {
	t.Parallel()
	e := listen(t)
	if err := e.server.accountKnown(t.Context()); err != nil {
		t.Error(err)
	}
	e.server.account.Name = "somebody-else"
	if e.server.accountKnown(t.Context()) == nil {
		t.Error("an account that the platform does not know is fine")
	}
}
