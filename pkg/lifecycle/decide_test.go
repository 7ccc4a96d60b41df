package lifecycle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/google/go-cmp/cmp"
)

// What is promised of every command in every state, for a run that is neither deleted nor placed nor rated and a command that
// speaks of its attempt. It is written from the prose, not from Transitions.
//
//	a state, perhaps "+" a job   applied: the run is so afterwards, and a worker is asked
//	=                            the same decision again: unchanged
//	twice, late                  a worker's word that changes nothing: duplicate, already_terminal
//	!state, !phase               refused
//	404, 422                     runs of this kind know no such command
const (
	normal = `
		|           parsing          | awaiting_confirm    | assembling          | completed | failed | rejected | cancelled
create   | !state           | !state              | !state              | !state    | !state | !state   | !state
parsed   | awaiting_confirm | twice               | twice               | late      | late   | late     | late
confirm  | !state           | assembling+assemble | =                   | !state    | !state | !state   | !state
reject   | !state           | rejected            | !state              | !state    | !state | =        | !state
complete | !phase           | !phase              | completed           | twice     | late   | late     | late
fail     | failed           | failed              | failed              | late      | twice  | late     | late
cancel   | cancelled        | cancelled           | cancelled           | !state    | !state | !state   | =
place    | !state           | !state              | !state              | completed | !state | !state   | !state
feedback | !state           | !state              | !state              | completed | !state | !state   | !state
delete   | !state           | !state              | !state              | completed | failed | rejected | cancelled
requeue  | parsing+parse    | !state              | assembling+assemble | !state    | !state | !state   | !state`

	autoConfirm = `
		|           parsing          | awaiting_confirm    | assembling          | completed | failed | rejected | cancelled
create   | !state           | !state              | !state              | !state    | !state | !state   | !state
parsed   | assembling       | twice               | twice               | late      | late   | late     | late
confirm  | !state           | assembling+assemble | !state              | !state    | !state | !state   | !state
reject   | !state           | rejected            | !state              | !state    | !state | =        | !state
complete | completed        | !phase              | completed           | twice     | late   | late     | late
fail     | failed           | failed              | failed              | late      | twice  | late     | late
cancel   | cancelled        | cancelled           | cancelled           | !state    | !state | !state   | =
place    | !state           | !state              | !state              | completed | !state | !state   | !state
feedback | !state           | !state              | !state              | completed | !state | !state   | !state
delete   | !state           | !state              | !state              | completed | failed | rejected | cancelled
requeue  | parsing+parse    | !state              | assembling+assemble | !state    | !state | !state   | !state`

	code2wf = `
		|           processing | completed | failed
create   | !state     | !state    | !state
parsed   | 422        | 422       | 422
confirm  | 404        | 404       | 404
reject   | 404        | 404       | 404
complete | completed  | twice     | late
fail     | failed     | late      | twice
cancel   | 404        | 404       | 404
place    | !state     | completed | !state
feedback | 404        | 404       | 404
delete   | !state     | completed | failed
requeue  | 404        | 404       | 404`
)

var verbs = []lifecycle.Verb{
	lifecycle.Create, lifecycle.Parsed, lifecycle.Confirm, lifecycle.Reject, lifecycle.Complete, lifecycle.Fail,
	lifecycle.Cancel, lifecycle.Place, lifecycle.Rate, lifecycle.Delete, lifecycle.Requeue,
}

// Catches any wrong, missing or additional way through the lifecycle, and whatever else a step would change in the row.
func TestDecideOnEveryRunAndCommand(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, m := range []struct {
		kind   lifecycle.Kind
		auto   bool
		drawn  string
		states int
	}{{lifecycle.WF2Des, false, normal, 7}, {lifecycle.WF2Des, true, autoConfirm, 7}, {lifecycle.Code2WF, false, code2wf, 3}} {
		cells := read(t, m.drawn)
		if len(cells) != len(verbs)*m.states {
			t.Fatalf("the table of %s says %d things, want %d", m.kind, len(cells), len(verbs)*m.states)
		}
		for at, cell := range cells {
			for _, run := range variants(m.kind, m.auto, at.state) {
				for _, cmd := range commands(run, at.verb) {
					check(t, run, cmd, expected(cell, run, cmd))
					seen++
				}
			}
		}
	}
	// A wf2des run can be 17 rows in each mode, a code2wf run 7; there are 36 commands.
	if all := (17 + 17 + 7) * 36; seen != all {
		t.Errorf("%d combinations were looked at; the product has %d", seen, all)
	}
}

type place struct {
	verb  lifecycle.Verb
	state lifecycle.State
}

func read(t *testing.T, drawn string) map[place]string {
	t.Helper()
	cells := map[place]string{}
	lines := strings.Split(strings.TrimSpace(drawn), "\n")
	states := split(lines[0])
	for _, l := range lines[1:] {
		words := split(l)
		if len(words) != len(states) {
			t.Fatalf("line %q has %d columns, want %d", l, len(words), len(states))
		}
		for i := range words[1:] {
			cells[place{lifecycle.Verb(words[0]), lifecycle.State(states[i+1])}] = words[i+1]
		}
	}
	return cells
}

func split(line string) []string {
	words := strings.Split(line, "|")
	for i := range words {
		words[i] = strings.TrimSpace(words[i])
	}
	return words
}

// expected adds the four rules that cut across the table: deletion hides, attempts fence, the first placement and the last
// feedback stand.
func expected(cell string, run lifecycle.Run, cmd lifecycle.Command) string {
	worker := cmd.Verb == lifecycle.Parsed || cmd.Verb == lifecycle.Complete || cmd.Verb == lifecycle.Fail
	fenced := worker || cmd.Verb == lifecycle.Confirm || cmd.Verb == lifecycle.Reject || cmd.Verb == lifecycle.Requeue
	switch {
	case cell == "404" || cell == "422":
		return cell
	case run.DeletedAt != nil && cmd.Verb == lifecycle.Delete:
		return "="
	case run.DeletedAt != nil && !worker:
		return "404"
	case worker && cmd.Attempt < run.Attempt:
		return "superseded"
	case fenced && cmd.Attempt != run.Attempt:
		return "!attempt"
	case cmd.Verb == lifecycle.Place && run.MaterializedAt != nil:
		return "="
	case cmd.Verb == lifecycle.Rate && run.Feedback != nil && *run.Feedback == cmd.Feedback:
		return "="
	}
	return cell
}

var (
	born  = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	then  = born.Add(time.Minute)
	now   = then.Add(time.Microsecond)
	acted = lifecycle.Actor{Voice: lifecycle.User, Name: "the one who acts"}
)

// variants are all rows that a run in this state can be: deleted or not, placed or not, rated or not.
func variants(kind lifecycle.Kind, auto bool, state lifecycle.State) []lifecycle.Run {
	run := lifecycle.Run{
		Ref: lifecycle.Ref{Kind: kind, ID: "the run"}, Tenant: lifecycle.Tenant{OrganizationID: 1, ProjectID: 2},
		FigmaFileKey: "file", ScreenID: "screen", AutoConfirm: auto, State: state, Attempt: 7,
		CreatedAt: born, UpdatedAt: then, CreatedBy: "the designer", UpdatedBy: "the last one",
	}
	switch state {
	case lifecycle.Completed:
		run.ResultURL, run.FlagCount = new("the first result"), new(1)
	case lifecycle.Failed:
		run.ErrorMessage = new("the first failure")
	}
	all := []lifecycle.Run{run}
	if state == lifecycle.Completed {
		all = also(all, func(r *lifecycle.Run) { r.MaterializedAt = &then })
		if kind == lifecycle.WF2Des {
			all = also(all, func(r *lifecycle.Run) { r.Feedback = new(lifecycle.Fixed) })
		}
	}
	if run.Ended() {
		all = also(all, func(r *lifecycle.Run) { r.DeletedAt, r.DeletedBy = &then, new("the one who deleted") })
	}
	return all
}

// also doubles runs: each as it is, and each changed.
func also(runs []lifecycle.Run, change func(*lifecycle.Run)) []lifecycle.Run {
	for _, r := range runs {
		change(&r)
		runs = append(runs, r)
	}
	return runs
}

// commands are the verb with every attempt and feedback that it can speak of. Each brings along all that any verb could use, so
// that a step which takes what is not its own is seen.
func commands(run lifecycle.Run, verb lifecycle.Verb) []lifecycle.Command {
	var all []lifecycle.Command
	for _, attempt := range []int{run.Attempt - 1, run.Attempt, run.Attempt + 1} {
		for _, f := range feedbacks(verb) {
			all = append(all, lifecycle.Command{
				Verb: verb, Run: run.Ref, By: acted, Attempt: attempt, Feedback: f, Message: "a message",
				Result:      lifecycle.Result{Key: new("a key"), FlagCount: new(3), Score: new(lifecycle.Score(4321)), ScoreVersion: new("ds@1.0")},
				Traceparent: "00-trace",
			})
		}
	}
	return all
}

func feedbacks(verb lifecycle.Verb) []lifecycle.FeedbackStatus {
	if verb == lifecycle.Rate {
		return []lifecycle.FeedbackStatus{lifecycle.Fixed, lifecycle.Adopted}
	}
	return []lifecycle.FeedbackStatus{lifecycle.Adopted}
}

func check(t *testing.T, run lifecycle.Run, cmd lifecycle.Command, want string) {
	t.Helper()
	got, err := lifecycle.Decide(run, cmd, now)
	about := fmt.Sprintf("%s %s, auto-confirm %t, deleted %t, placed %t, attempt %d: %s of attempt %d", run.Kind, run.State, run.AutoConfirm,
		run.DeletedAt != nil, run.MaterializedAt != nil, run.Attempt, cmd.Verb, cmd.Attempt)
	if told := word(run, got, err); told != want {
		t.Errorf("%s: %s, want %s (%v)", about, told, want, err)
		return
	}
	next := run
	switch {
	case err != nil:
		next = lifecycle.Run{}
	case got.Outcome == lifecycle.Applied:
		next = moved(run, cmd, got.Next.State)
	}
	if diff := cmp.Diff(next, got.Next); diff != "" {
		t.Errorf("%s: the run (-want +got):\n%s", about, diff)
	}
	if diff := cmp.Diff(lineOf(run, cmd, got), got.Event); diff != "" {
		t.Errorf("%s: the line (-want +got):\n%s", about, diff)
	}
}

// word says in the table's language what was decided.
func word(run lifecycle.Run, d lifecycle.Decision, err error) string {
	if err != nil {
		return refusal(run, err)
	}
	switch d.Outcome {
	case lifecycle.Applied:
		return strings.TrimSuffix(string(d.Next.State)+"+"+string(d.Job), "+")
	case lifecycle.Unchanged:
		return "="
	case lifecycle.Duplicate:
		return "twice"
	case lifecycle.AlreadyTerminal:
		return "late"
	}
	return string(d.Outcome)
}

func refusal(run lifecycle.Run, err error) string {
	var refused *lifecycle.RefusedError
	var invalid *lifecycle.InvalidError
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return "404"
	case errors.As(err, &invalid) && invalid.Field == "/event" && invalid.Reason != "":
		return "422"
	case errors.As(err, &refused) && refused.Reason != "" && cmp.Equal(refused.Run, run):
		return map[lifecycle.Refusal]string{
			lifecycle.StateConflict: "!state", lifecycle.PhaseConflict: "!phase", lifecycle.AttemptMismatch: "!attempt",
		}[refused.Code]
	}
	return "an error that tells nothing: " + err.Error()
}

// moved is the row after an applied step, written down once more.
func moved(run lifecycle.Run, cmd lifecycle.Command, to lifecycle.State) lifecycle.Run {
	run.State, run.UpdatedAt, run.UpdatedBy = to, now, "the one who acts"
	switch cmd.Verb {
	case lifecycle.Complete:
		run.ResultURL, run.FlagCount = new("a key"), new(3)
		if run.Kind == lifecycle.WF2Des {
			run.Score, run.ScoreVersion = new(lifecycle.Score(4321)), new("ds@1.0")
		}
	case lifecycle.Fail:
		run.ResultURL, run.ErrorMessage = new("a key"), new("a message")
	case lifecycle.Place:
		run.MaterializedAt = &now
	case lifecycle.Rate:
		run.Feedback = &cmd.Feedback
	case lifecycle.Delete:
		run.DeletedAt, run.DeletedBy = &now, new("the one who acts")
	case lifecycle.Requeue:
		run.Attempt = 8
	}
	return run
}

var pastTense = map[lifecycle.Verb]lifecycle.What{
	lifecycle.Parsed: "parsed", lifecycle.Confirm: "confirmed", lifecycle.Reject: "rejected", lifecycle.Complete: "completed",
	lifecycle.Fail: "failed", lifecycle.Cancel: "cancelled", lifecycle.Place: "placed", lifecycle.Rate: "rated",
	lifecycle.Delete: "deleted", lifecycle.Requeue: "requeued",
}

// lineOf is the timeline's line for a decision: none for refusals and repeated decisions.
func lineOf(run lifecycle.Run, cmd lifecycle.Command, d lifecycle.Decision) *lifecycle.Event {
	if d.Outcome == "" || d.Outcome == lifecycle.Unchanged {
		return nil
	}
	e := &lifecycle.Event{
		Run: run.Ref, What: pastTense[cmd.Verb], Outcome: d.Outcome, By: acted, From: run.State, To: d.Next.State,
		Attempt: cmd.Attempt, Version: d.Next.UpdatedAt, At: now, Traceparent: "00-trace",
	}
	if d.Outcome == lifecycle.Applied {
		e.Attempt = d.Next.Attempt // who need not name an attempt cannot name a wrong one
	}
	switch cmd.Verb {
	case lifecycle.Complete:
		e.Data = lifecycle.EventData{ResultURL: new("a key"), FlagCount: new(3), Score: new(lifecycle.Score(4321)), ScoreVersion: new("ds@1.0")}
	case lifecycle.Fail:
		e.Data = lifecycle.EventData{ResultURL: new("a key"), ErrorMessage: new("a message")}
	case lifecycle.Rate:
		e.Data = lifecycle.EventData{Feedback: &cmd.Feedback}
	}
	return e
}
