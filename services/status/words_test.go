package main

import (
	"fmt"
	"strings"
	"testing"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"github.com/google/go-cmp/cmp"
)

// verdict is what a worker's word must come to.
type verdict struct {
	status  int    // of the answer
	code    string // of a refusal
	outcome string
	to      lifecycle.State
	goOn    bool
}

var steps = map[string]lifecycle.State{
	"parsing parsed": lifecycle.AwaitingConfirm, "parsing parsed auto": lifecycle.Assembling, "parsing completed auto": lifecycle.Completed,
	"assembling completed": lifecycle.Completed, "assembling completed auto": lifecycle.Completed, "processing completed": lifecycle.Completed,
	"parsing failed": lifecycle.Failed, "parsing failed auto": lifecycle.Failed, "awaiting_confirm failed": lifecycle.Failed,
	"assembling failed": lifecycle.Failed, "assembling failed auto": lifecycle.Failed, "processing failed": lifecycle.Failed,
}

// must is written from what the suite promises its workers, not from how it decides.
func must(run lifecycle.Run, said event, attempt int) verdict {
	way := string(run.State) + " " + string(said)
	if run.AutoConfirm {
		way += " auto"
	}
	to, isStep := steps[way]
	late := verdict{status: 200, to: run.State}
	switch {
	case said == parsed && run.Kind == lifecycle.Code2WF:
		return verdict{status: 422, code: "invalid_field"}
	case attempt < run.Attempt:
		late.outcome = "superseded"
	case attempt > run.Attempt:
		return verdict{status: 409, code: "attempt_mismatch"}
	case run.State.Open() && said == progress:
		late.outcome, late.goOn = "applied", true
	case isStep:
		return verdict{status: 200, outcome: "applied", to: to, goOn: to.Open()}
	case run.State.Open() && said == parsed:
		late.outcome, late.goOn = "duplicate", true
	case run.State.Open():
		return verdict{status: 409, code: "phase_conflict"}
	case string(run.State) == string(said):
		late.outcome = "duplicate"
	default:
		late.outcome = "already_terminal"
	}
	return late
}

// Every event meets every state of both kinds and both confirm modes, from an older, the same and a newer attempt. The answer, the
// row, the timeline, the outbox and the hints are held against what the suite promises.
func TestEveryWordInEveryState(t *testing.T) {
	t.Parallel()
	e := listen(t)
	for _, kind := range lifecycle.Kinds {
		for _, auto := range []bool{false, true} {
			for _, state := range servicetest.StatesOf(kind) {
				if auto && (kind == lifecycle.Code2WF || state == lifecycle.AwaitingConfirm || state == lifecycle.Rejected) {
					continue // no such runs
				}
				for _, said := range []event{parsed, completed, failed, progress} {
					for attempt := 1; attempt <= 3; attempt++ {
						e.sayOnce(t, e.atAttempt2(t, kind, state, auto), said, attempt)
					}
				}
			}
		}
	}
}

func (e *ear) atAttempt2(t *testing.T, kind lifecycle.Kind, state lifecycle.State, auto bool) lifecycle.Run {
	t.Helper()
	run := e.In(t, kind, state, func(r *lifecycle.Run) { r.AutoConfirm = auto })
	e.SQL.MustExec(`UPDATE `+string(kind)+` SET attempt = 2 WHERE id = $1`, run.ID)
	run.Attempt = 2
	return run
}

func (e *ear) sayOnce(t *testing.T, run lifecycle.Run, said event, attempt int) {
	t.Helper()
	what := fmt.Sprintf("%s of attempt %d about a %s run (auto %v) in %s", said, attempt, run.Kind, run.AutoConfirm, run.State)
	row, lines, letters := e.Row(t, run.Ref), e.Timeline(t, run.Ref), e.Outbox(t, run.Ref)
	spoken := run
	spoken.Attempt = attempt
	want := must(run, said, attempt)
	reply := e.say(t, whole(spoken, said))
	if want.status == 200 {
		mustTell(t, what, reply, answered(want.outcome, want.to, 2, want.goOn))
	} else {
		problem := reply.Refused(t, want.status, want.code)
		if want.status == 409 && (problem["runStatus"] != string(run.State.Status()) || problem["attempt"] != 2.) {
			t.Errorf("%s: a refusal that does not say how the run stands: %s", what, reply.Body)
		}
	}
	applied := want.outcome == "applied" && said != progress
	e.checkRow(t, what, run, said, want, applied, row)
	e.checkTimeline(t, what, run, said, want, attempt, lines)
	told, reports := e.nerve.take()
	if wantTold := map[bool][]lifecycle.Ref{true: {run.Ref}}[applied]; !cmp.Equal(wantTold, told) {
		t.Errorf("%s: told of changes of %v", what, told)
	}
	if (said == progress && want.outcome == "applied") != (len(reports) == 1) {
		t.Errorf("%s: progress %v was passed on", what, reports)
	}
	var event []string
	if applied {
		event = []string{fmt.Sprint("events ", len(lines)+1)}
	}
	if diff := cmp.Diff(event, servicetest.Told(e.Outbox(t, run.Ref)[len(letters):])); diff != "" {
		t.Errorf("%s: the outbox (-want +got):\n%s", what, diff)
	}
}

func (e *ear) checkRow(t *testing.T, what string, run lifecycle.Run, said event, want verdict, applied bool, row map[string]any) {
	t.Helper()
	got := e.Row(t, run.Ref)
	if applied {
		was := row["updated_at"].(string)
		if now := got["updated_at"].(string); now <= was {
			t.Errorf("%s: updated_at went from %s to %s", what, was, now)
		}
		row["updated_at"], row["updated_by"] = got["updated_at"], platform.UserWorker
		row["status"] = map[lifecycle.Status]string{"processing": "0", "completed": "1", "failed": "2"}[want.to.Status()]
		if run.Kind == lifecycle.WF2Des {
			row["phase"] = map[lifecycle.Phase]any{"": nil, "awaiting_confirm": "1", "assemble": "2"}[want.to.Phase()]
		}
		switch said {
		case completed:
			row["result_url"], row["flag_count"] = key(run), 3.
			if run.Kind == lifecycle.WF2Des {
				row["score"], row["score_version"] = 0.9031, "ds@2.0"
			}
		case failed:
			row["error_message"] = "The frame holds nothing that could be generated from."
		}
	}
	if diff := cmp.Diff(row, got); diff != "" {
		t.Errorf("%s: the row (-want +got):\n%s", what, diff)
	}
}

func (e *ear) checkTimeline(t *testing.T, what string, run lifecycle.Run, said event, want verdict, attempt int, lines []servicetest.Line) {
	t.Helper()
	got := e.Timeline(t, run.Ref)
	if want.status != 200 || said == progress {
		if len(got) != len(lines) {
			t.Errorf("%s: written to the timeline: %+v", what, got[len(lines):])
		}
		return
	}
	if len(got) != len(lines)+1 {
		t.Errorf("%s: %d lines were written, want 1", what, len(got)-len(lines))
		return
	}
	last := got[len(lines)]
	if last.Traceparent == nil || !strings.Contains(*last.Traceparent, traceID) {
		t.Errorf("%s: the line does not belong to the caller's trace: %v", what, last.Traceparent)
	}
	last.Data, last.Traceparent = "", nil
	from := string(run.State)
	line := servicetest.Line{What: string(said), Outcome: want.outcome, By: "worker", Actor: platform.UserWorker, From: &from,
		To: string(want.to), Attempt: attempt}
	if diff := cmp.Diff(line, last); diff != "" {
		t.Errorf("%s: the line (-want +got):\n%s", what, diff)
	}
}

// Catches a worker that is told another thing about a run because somebody has deleted it, and a deleted run that comes back.
func TestWordsAboutADeletedRun(t *testing.T) {
	t.Parallel()
	e := listen(t)
	run := e.In(t, lifecycle.WF2Des, lifecycle.Failed)
	e.Step(t, run, lifecycle.Delete)
	row := e.Row(t, run.Ref)
	mustTell(t, "failed", e.say(t, whole(run, failed)), answered("duplicate", lifecycle.Failed, 1, false))
	mustTell(t, "completed", e.say(t, whole(run, completed)), answered("already_terminal", lifecycle.Failed, 1, false))
	mustTell(t, "progress", e.say(t, whole(run, progress)), answered("already_terminal", lifecycle.Failed, 1, false))
	if diff := cmp.Diff(row, e.Row(t, run.Ref)); diff != "" {
		t.Errorf("the row changed:\n%s", diff)
	}
	if last := e.LastLine(t, run.Ref); last.What != "completed" || last.Outcome != "already_terminal" {
		t.Errorf("the timeline ends with %+v", last)
	}
}

// Catches a webhook that reaches a run of the other kind, or that finds what is not there.
func TestRunsThatAreNotThere(t *testing.T) {
	t.Parallel()
	e := listen(t)
	wf2des, code2wf := e.In(t, lifecycle.WF2Des, lifecycle.Assembling), e.In(t, lifecycle.Code2WF, lifecycle.Processing)
	wf2des.Kind, code2wf.Kind = lifecycle.Code2WF, lifecycle.WF2Des
	e.unchanged(t, "asking for runs that are not there", func() {
		for _, run := range []lifecycle.Run{wf2des, code2wf, e.Draft(lifecycle.WF2Des), e.Draft(lifecycle.Code2WF)} {
			run.Attempt = 1
			for _, said := range []event{completed, failed, progress} {
				e.say(t, whole(run, said)).Refused(t, 404, "not_found")
			}
		}
	})
}
