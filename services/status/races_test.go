package main

import (
	"net/http"
	"sync"
	"testing"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/store"
	"github.com/google/go-cmp/cmp"
)

// atOnce sends the bodies at the same time and counts what their senders were told.
func (e *ear) atOnce(t *testing.T, bodies ...string) map[string]int {
	t.Helper()
	requests := make([]*http.Request, len(bodies))
	for i, body := range bodies {
		requests[i] = e.signed(t, body)
	}
	var mu sync.Mutex
	told := map[string]int{}
	var sending sync.WaitGroup
	start := make(chan struct{})
	for _, r := range requests {
		sending.Go(func() {
			<-start
			reply, err := e.Try(r)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || reply.Status != 200 {
				t.Errorf("got %d %s %v", reply.Status, reply.Body, err)
				return
			}
			told[reply.JSON(t)["outcome"].(string)]++
		})
	}
	close(start)
	sending.Wait()
	return told
}

// Catches a message that arrives a hundred times at once and takes its step more than once, or never.
func TestOneMessageAHundredTimes(t *testing.T) {
	t.Parallel()
	e := listen(t)
	for said, state := range map[event]lifecycle.State{parsed: lifecycle.Parsing, completed: lifecycle.Assembling, failed: lifecycle.AwaitingConfirm} {
		run := e.In(t, lifecycle.WF2Des, state)
		lines, letters := len(e.Timeline(t, run.Ref)), len(e.Outbox(t, run.Ref))
		bodies := make([]string, 100)
		for i := range bodies {
			bodies[i] = whole(run, said)
		}
		if diff := cmp.Diff(map[string]int{"applied": 1, "duplicate": 99}, e.atOnce(t, bodies...)); diff != "" {
			t.Errorf("%s: told (-want +got):\n%s", said, diff)
		}
		if n := len(e.Timeline(t, run.Ref)) - lines; n != 100 {
			t.Errorf("%s: the timeline has %d lines of it, want 100", said, n)
		}
		if n := len(e.Outbox(t, run.Ref)) - letters; n != 1 {
			t.Errorf("%s: the world is told %d times, want once", said, n)
		}
		if told, _ := e.nerve.take(); len(told) != 1 {
			t.Errorf("%s: %d hints, want 1", said, len(told))
		}
	}
}

// Catches a run with two endings. First ending wins.
func TestCompletedAndFailedTogether(t *testing.T) {
	t.Parallel()
	e := listen(t)
	for range 20 {
		run := e.In(t, lifecycle.Code2WF, lifecycle.Processing)
		told := e.atOnce(t, whole(run, completed), whole(run, failed), whole(run, completed), whole(run, failed))
		if diff := cmp.Diff(map[string]int{"applied": 1, "duplicate": 1, "already_terminal": 2}, told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		row, first := e.Row(t, run.Ref), e.Timeline(t, run.Ref)[1]
		if first.Outcome != "applied" || (row["status"] == "1") != (first.What == "completed") || (row["result_url"] != nil) == (row["error_message"] != nil) {
			t.Errorf("the row %v and the line %+v disagree", row, first)
		}
		if diff := cmp.Diff([]string{"jobs generate", "events 1", "events 2"}, servicetest.Told(e.Outbox(t, run.Ref))); diff != "" {
			t.Error(diff)
		}
	}
}

// Catches a cancelled run that a worker completes all the same, and a worker that is not told that its work is not wanted.
func TestCancelAndCompletedTogether(t *testing.T) {
	t.Parallel()
	e := listen(t)
	for range 20 {
		run := e.In(t, lifecycle.WF2Des, lifecycle.Assembling)
		cancelled := make(chan error, 1)
		go func() {
			_, err := e.Store.Apply(t.Context(), lifecycle.Command{Verb: lifecycle.Cancel, Run: run.Ref, Tenant: &run.Tenant,
				By: lifecycle.Actor{Voice: lifecycle.User, Name: e.Owner.Subject}})
			cancelled <- err
		}()
		told, err := e.atOnce(t, whole(run, completed)), <-cancelled
		switch row := e.Row(t, run.Ref); {
		case told["applied"] == 1 && err != nil && row["status"] == "1":
		case told["already_terminal"] == 1 && err == nil && row["status"] == "4" && row["result_url"] == nil:
		default:
			t.Errorf("the worker was told %v, the designer %v, and the row is %v", told, err, row)
		}
	}
	run := e.In(t, lifecycle.WF2Des, lifecycle.Cancelled)
	for _, said := range []event{parsed, completed, failed, progress} {
		mustTell(t, string(said), e.say(t, whole(run, said)), answered("already_terminal", lifecycle.Cancelled, 1, false))
	}
}

// Catches a fault of PostgreSQL that is told as anything but worth another try, or as the worker's own.
func TestPostgreSQLDown(t *testing.T) {
	t.Parallel()
	e := listen(t)
	run := e.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	up := e.server.store
	var err error
	if e.server.store, err = store.Open("postgres://127.0.0.1:1/none?sslmode=disable", store.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.server.store.Close() })
	for _, said := range []event{failed, progress} {
		reply := e.say(t, whole(run, said))
		if reply.Refused(t, 503, "unavailable"); reply.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", said)
		}
	}
	e.server.store, up = up, e.server.store
	mustTell(t, "told again", e.say(t, whole(run, failed)), answered("applied", lifecycle.Failed, 1, false))
	e.server.store = up
}
