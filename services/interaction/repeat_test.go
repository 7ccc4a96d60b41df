package main

import (
	"testing"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
)

// decide sends a decision that must be answered 200.
func (in *interaction) decide(t *testing.T, method, path, body string) {
	t.Helper()
	if reply := in.Send(t, method, path, in.Owner, body); reply.Status != 200 {
		t.Fatalf("%s %s: %d %s", method, path, reply.Status, reply.Body)
	}
}

// Placing again, by whomever, changes nothing: the first time stands for ever.
func TestThePlacementThatWasFirstStands(t *testing.T) {
	t.Parallel()
	in := open(t)
	for _, kind := range lifecycle.Kinds {
		run := in.In(t, kind, lifecycle.Completed)
		path := servicetest.Path(run, 1)
		in.decide(t, "POST", path+"/placement", "")
		placed := in.Row(t, run.Ref)["materialized_at"]
		reply := in.still(t, func() servicetest.Reply { return in.Send(t, "POST", path+"/placement", in.Colleague, "{}") })
		if reply.Status != 200 || reply.JSON(t)["materializedAt"] == nil || in.Row(t, run.Ref)["materialized_at"] != placed {
			t.Errorf("%s, placed again: %d %s", kind, reply.Status, reply.Body)
		}
	}
}

// The last word of feedback stands; the same word again changes nothing. It may come before the placement.
func TestFeedbackThatWasLastStands(t *testing.T) {
	t.Parallel()
	in := open(t)
	run := in.In(t, lifecycle.WF2Des, lifecycle.Completed)
	path := servicetest.Path(run, 1) + "/feedback"
	for _, step := range []struct {
		word, digit string
		still       bool
	}{{"fixed", "0", false}, {"fixed", "0", true}, {"adopted", "1", false}, {"adopted", "1", true}, {"fixed", "0", false}} {
		send := func() servicetest.Reply {
			return in.Send(t, "POST", path, in.Colleague, `{"feedbackStatus":"`+step.word+`"}`)
		}
		ask := send
		if step.still {
			ask = func() servicetest.Reply { return in.still(t, send) }
		}
		if reply := ask(); reply.Status != 200 || reply.JSON(t)["feedbackStatus"] != step.word {
			t.Errorf("%s: %d %s", step.word, reply.Status, reply.Body)
		}
		if got := in.Row(t, run.Ref)["feedback_status"]; got != step.digit {
			t.Errorf("after %s the row holds %v", step.word, got)
		}
	}
	if got := len(in.Timeline(t, run.Ref)); got != 4+3 {
		t.Errorf("the timeline has %d lines; want one for each word that changed something", got)
	}
}

// A deleted run is nowhere to be found, except by who deletes it again.
func TestDeletedRunIsGone(t *testing.T) {
	t.Parallel()
	in := open(t)
	for _, kind := range lifecycle.Kinds {
		run := in.In(t, kind, lifecycle.Completed)
		path := servicetest.Path(run, 1)
		in.decide(t, "DELETE", path, "")
		for _, d := range decisions {
			if d.name == "delete" {
				continue
			}
			in.still(t, func() servicetest.Reply { return in.ask(t, d, run) }).Refused(t, 404, "not_found")
		}
		reply := in.still(t, func() servicetest.Reply { return in.Send(t, "DELETE", path, in.Colleague, "{}") })
		if reply.Status != 200 || reply.JSON(t)["id"] != run.ID {
			t.Errorf("deleted again: %d %s", reply.Status, reply.Body)
		}
		if actions := reply.JSON(t)["nextActions"].([]any); len(actions) != 0 {
			t.Errorf("a deleted run offers %v", actions)
		}
		if by := in.Row(t, run.Ref)["deleted_by"]; by != in.Owner.Subject {
			t.Errorf("deleted_by is %v", by)
		}
	}
}

// Who decides speaks of what was shown: another attempt than the row's is refused, whatever the state.
func TestDecisionOnAnotherAttempt(t *testing.T) {
	t.Parallel()
	in := open(t)
	for _, state := range servicetest.StatesOf(lifecycle.WF2Des) {
		run := in.In(t, lifecycle.WF2Des, state)
		in.SQL.MustExec(`UPDATE wf2des SET attempt = 3 WHERE id = $1`, run.ID)
		run.Attempt = 3
		path := servicetest.Path(run, 1) + "/confirm"
		for _, word := range []string{"confirm", "reject"} {
			for _, attempt := range []string{"1", "2", "4", "2147483647"} {
				problem := in.still(t, func() servicetest.Reply {
					return in.Send(t, "POST", path, in.Owner, `{"decision":"`+word+`","attempt":`+attempt+`}`)
				}).Refused(t, 409, "attempt_mismatch")
				in.tells(t, problem, run)
			}
		}
	}
	run := in.In(t, lifecycle.WF2Des, lifecycle.AwaitingConfirm)
	in.SQL.MustExec(`UPDATE wf2des SET attempt = 3 WHERE id = $1`, run.ID)
	in.decide(t, "POST", servicetest.Path(run, 1)+"/confirm", `{"attempt":3,"decision":"confirm"}`)
	last := in.Outbox(t, run.Ref)
	if job := last[len(last)-2]; *job.Stage != "assemble" || job.Attempt != 3 {
		t.Errorf("the job is %+v", job)
	}
	if line := in.LastLine(t, run.Ref); line.Attempt != 3 {
		t.Errorf("the timeline says attempt %d", line.Attempt)
	}
}

// Nobody was asked about an auto-confirm run, so there is nothing to say about it.
func TestAutoConfirmRunIsNotConfirmed(t *testing.T) {
	t.Parallel()
	in := open(t)
	run := in.In(t, lifecycle.WF2Des, lifecycle.Assembling, func(r *lifecycle.Run) { r.AutoConfirm = true })
	for _, d := range decisions[:2] {
		in.conflict(t, d, run)
	}
	in.applied(t, decisions[2], run, lifecycle.Cancelled)
}
