package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"
	"uuid"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"github.com/google/go-cmp/cmp"
)

// Every step of both kinds is stored exactly as it was decided: the row, one line, the job if there is one, one announcement, and
// nothing else anywhere. Catches a column that is not written or written to another, a job that is forgotten or sent for nothing, and
// a neighbour's row that is touched.
func TestApplyStoresEveryStep(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, kind := range lifecycle.Kinds {
		w.create(t, w.creation(kind)) // a neighbour
	}
	for _, step := range lifecycle.Transitions {
		if step.Verb == lifecycle.Create {
			continue
		}
		for _, auto := range []bool{false, true} {
			fits := step.When == lifecycle.Always || auto == (step.When == lifecycle.IfAutoConfirm)
			if reachable := !auto || step.Kind == lifecycle.WF2Des && step.From != lifecycle.AwaitingConfirm && step.From != lifecycle.Rejected; fits && reachable {
				w.mustStore(t, step, auto)
			}
		}
	}
}

func (w *world) mustStore(t *testing.T, step lifecycle.Transition, auto bool) {
	t.Helper()
	about := fmt.Sprintf("%s of a %s run that is %s", step.Verb, step.Kind, step.From)
	c := w.creation(step.Kind)
	c.Run.AutoConfirm = auto
	run := w.in(t, step.From, c)
	entries := value[int](t, w, `SELECT coalesce(max(id), 0) FROM outbox`)
	others, seq := w.others(t, run), len(w.timeline(t, run.Ref))

	cmd := command(step.Verb, run)
	got := w.apply(t, cmd)
	want, err := lifecycle.Decide(run, cmd, got.Run.UpdatedAt)
	if err != nil || got.Outcome != lifecycle.Applied || want.Next.State != step.To {
		t.Fatalf("%s: %s, decided %v, %v", about, got.Outcome, want, err)
	}
	if diff := cmp.Diff(want.Next, got.Run); diff != "" {
		t.Errorf("%s returned (-decided +returned):\n%s", about, diff)
	}
	if diff := cmp.Diff(want.Next, w.read(t, run.Ref)); diff != "" {
		t.Errorf("%s stored (-decided +row):\n%s", about, diff)
	}
	want.Event.Seq = seq + 1
	if diff := cmp.Diff(*want.Event, w.timeline(t, run.Ref)[seq]); diff != "" {
		t.Errorf("%s told (-decided +line):\n%s", about, diff)
	}
	if diff := cmp.Diff(expectedEntries(want, seq+1), w.columns(t, `SELECT destination, kind, run_id, attempt, stage, seq, traceparent, state
		FROM outbox WHERE id > $1 ORDER BY destination DESC`, entries)); diff != "" {
		t.Errorf("%s asked for (-want +outbox):\n%s", about, diff)
	}
	if diff := cmp.Diff(others, w.others(t, run)); diff != "" {
		t.Errorf("%s touched other runs:\n%s", about, diff)
	}
	w.mustReplay(t, c.Run)
}

// others is what is stored about all runs but one.
func (w *world) others(t *testing.T, run lifecycle.Run) string {
	t.Helper()
	return w.table(t, `(SELECT w::text FROM wf2des w WHERE id <> '`+run.ID+`' UNION SELECT c::text FROM code2wf c WHERE id <> '`+run.ID+`'
		UNION SELECT e::text FROM run_event e WHERE run_id <> '`+run.ID+`' UNION SELECT o::text FROM outbox o WHERE run_id <> '`+run.ID+`')`)
}

func expectedEntries(d lifecycle.Decision, seq int) []map[string]any {
	entry := func(destination string, stage, seq any) map[string]any {
		return map[string]any{
			"destination": destination, "kind": string(d.Next.Kind), "run_id": d.Next.ID, "attempt": int64(d.Next.Attempt), "stage": stage,
			"seq": seq, "traceparent": d.Event.Traceparent, "state": "pending",
		}
	}
	entries := []map[string]any{entry("events", nil, int64(seq))}
	if d.Job != lifecycle.NoJob {
		entries = append([]map[string]any{entry("jobs", string(d.Job), nil)}, entries...)
	}
	return entries
}

// Catches results whose optional parts become zeros or get lost, and a score that changes on its way through numeric(5,4).
func TestApplyKeepsWhatTheWorkerLeftOut(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, kind := range lifecycle.Kinds {
		for _, result := range []lifecycle.Result{
			{Key: new("k")},
			{Key: new("k"), FlagCount: new(0), Score: new(lifecycle.Score(0)), ScoreVersion: new("")},
			{Key: new("k"), FlagCount: new(2147483647), Score: new(lifecycle.Score(10000)), ScoreVersion: new("ds@1.0")},
			{Key: new("k"), Score: new(lifecycle.Score(1))},
			{Key: new("k"), Score: new(lifecycle.Score(3333))},
		} {
			c := w.creation(kind)
			c.Run.AutoConfirm = kind == lifecycle.WF2Des
			cmd := command(lifecycle.Complete, w.create(t, c))
			cmd.Result = result
			if kind == lifecycle.Code2WF {
				result.Score, result.ScoreVersion = nil, nil // its table has no such columns
			}
			w.apply(t, cmd)
			got := w.read(t, cmd.Run)
			if diff := cmp.Diff(result, lifecycle.Result{Key: got.ResultURL, FlagCount: got.FlagCount, Score: got.Score, ScoreVersion: got.ScoreVersion}); diff != "" {
				t.Errorf("%s (-told +stored):\n%s", kind, diff)
			}
			w.mustReplay(t, c.Run)
		}
		fail := command(lifecycle.Fail, w.create(t, w.creation(kind)))
		fail.Result = lifecycle.Result{}
		w.apply(t, fail)
		if got := w.read(t, fail.Run); got.ResultURL != nil || *got.ErrorMessage != fail.Message {
			t.Errorf("%s: a failure without an artifact is stored as %v, %v", kind, got.ResultURL, got.ErrorMessage)
		}
	}
}

// Catches a late word that changes the row, its audit columns or its version, that asks for work or is announced, or that is forgotten.
func TestLateWordsReachTheTimelineOnly(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, c := range []struct {
		kind    lifecycle.Kind
		state   lifecycle.State
		verb    lifecycle.Verb
		attempt int // beside the row's
		want    lifecycle.Outcome
	}{
		{lifecycle.WF2Des, lifecycle.AwaitingConfirm, lifecycle.Parsed, 0, lifecycle.Duplicate},
		{lifecycle.WF2Des, lifecycle.Assembling, lifecycle.Parsed, 0, lifecycle.Duplicate},
		{lifecycle.WF2Des, lifecycle.Completed, lifecycle.Complete, 0, lifecycle.Duplicate},
		{lifecycle.WF2Des, lifecycle.Completed, lifecycle.Fail, 0, lifecycle.AlreadyTerminal},
		{lifecycle.WF2Des, lifecycle.Failed, lifecycle.Fail, 0, lifecycle.Duplicate},
		{lifecycle.WF2Des, lifecycle.Cancelled, lifecycle.Complete, 0, lifecycle.AlreadyTerminal},
		{lifecycle.WF2Des, lifecycle.Rejected, lifecycle.Parsed, 0, lifecycle.AlreadyTerminal},
		{lifecycle.WF2Des, lifecycle.Parsing, lifecycle.Parsed, -1, lifecycle.Superseded},
		{lifecycle.WF2Des, lifecycle.Assembling, lifecycle.Fail, -1, lifecycle.Superseded},
		{lifecycle.WF2Des, lifecycle.Completed, lifecycle.Complete, -1, lifecycle.Superseded},
		{lifecycle.Code2WF, lifecycle.Completed, lifecycle.Complete, 0, lifecycle.Duplicate},
		{lifecycle.Code2WF, lifecycle.Failed, lifecycle.Complete, 0, lifecycle.AlreadyTerminal},
		{lifecycle.Code2WF, lifecycle.Processing, lifecycle.Fail, -1, lifecycle.Superseded},
	} {
		asked := w.creation(c.kind)
		run := w.in(t, c.state, asked)
		cmd := command(c.verb, run)
		cmd.Attempt += c.attempt
		cmd.By.Name = platform.UserAPI
		rows := w.table(t, string(c.kind)) + w.table(t, "outbox")
		lines := w.timeline(t, run.Ref)

		got := w.apply(t, cmd)
		if got.Outcome != c.want || !cmp.Equal(got.Run, run) {
			t.Errorf("%s of attempt %d for a run that is %s: %s with %v, want %s", c.verb, cmd.Attempt, c.state, got.Outcome, got.Run, c.want)
		}
		if diff := cmp.Diff(rows, w.table(t, string(c.kind))+w.table(t, "outbox")); diff != "" {
			t.Errorf("a late %s changed:\n%s", c.verb, diff)
		}
		after := w.timeline(t, run.Ref)
		line := after[len(after)-1]
		if len(after) != len(lines)+1 || line.Outcome != c.want || line.Attempt != cmd.Attempt || line.By != cmd.By || line.Traceparent != cmd.Traceparent {
			t.Errorf("a late %s left the line %+v after %d others", c.verb, line, len(lines))
		}
		w.mustReplay(t, asked.Run)
	}
}

// Catches a refused or repeated command that leaves any trace: a row version, a line, an entry. Also that the refusal holds the row.
func TestRefusedAndRepeatedCommandsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, kind := range lifecycle.Kinds {
		for _, state := range statesOf[kind] {
			run := w.in(t, state, w.creation(kind))
			for _, verb := range []lifecycle.Verb{
				lifecycle.Parsed, lifecycle.Confirm, lifecycle.Reject, lifecycle.Complete, lifecycle.Cancel, lifecycle.Place, lifecycle.Rate, lifecycle.Delete,
				lifecycle.Requeue,
			} {
				cmd := command(verb, run)
				d, want := lifecycle.Decide(run, cmd, run.UpdatedAt.Add(time.Microsecond))
				if want == nil && d.Outcome != lifecycle.Unchanged {
					continue
				}
				about := fmt.Sprintf("%s of a %s run that is %s", verb, kind, state)
				w.unchanged(t, about, func() {
					got, err := w.Apply(t.Context(), cmd)
					if diff := cmp.Diff(store.Applied{Outcome: d.Outcome, Run: d.Next}, got); diff != "" || fmt.Sprint(err) != fmt.Sprint(want) {
						t.Errorf("%s: %v, want %v; (-want +got)\n%s", about, err, want, diff)
					}
					if refused, ok := errors.AsType[*lifecycle.RefusedError](err); ok && !cmp.Equal(refused.Run, run) {
						t.Errorf("%s: refused with another run:\n%s", about, cmp.Diff(run, refused.Run))
					}
				})
			}
		}
	}
}

// Catches a way past the tenant's fence, and any difference between what is not there and what is not yours.
func TestTenantsAreApart(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, kind := range lifecycle.Kinds {
		mine := w.in(t, lifecycle.Completed, w.creation(kind))
		for _, other := range []lifecycle.Tenant{
			{OrganizationID: platform.OrganizationID, ProjectID: platform.OtherProjectID},
			{OrganizationID: platform.OtherOrganizationID, ProjectID: platform.OtherOrganizationProjectID},
			{OrganizationID: platform.OtherOrganizationID, ProjectID: platform.ProjectID},
			{},
		} {
			for ref, whose := range map[lifecycle.Ref]string{mine.Ref: "another's", {Kind: kind, ID: uuid.NewV7().String()}: "nobody's"} {
				w.unchanged(t, whose+" run", func() {
					if _, err := w.Run(t.Context(), ref, other); err != lifecycle.ErrNotFound {
						t.Errorf("reading %s run: %v", whose, err)
					}
					for _, verb := range []lifecycle.Verb{lifecycle.Place, lifecycle.Delete, lifecycle.Confirm, lifecycle.Cancel} {
						cmd := command(verb, mine)
						cmd.Run, cmd.Tenant = ref, &other
						if got, err := w.Apply(t.Context(), cmd); err != lifecycle.ErrNotFound || !cmp.Equal(got, store.Applied{}) {
							t.Errorf("%s of %s run: %v, %v", verb, whose, got, err)
						}
					}
				})
			}
		}
		if got, err := w.Run(t.Context(), mine.Ref, tenant); err != nil || !cmp.Equal(got, mine) {
			t.Errorf("one's own run: %v, %v", got, err)
		}
		wrong := lifecycle.Ref{Kind: lifecycle.Kinds[0], ID: mine.ID}
		if kind == wrong.Kind {
			wrong.Kind = lifecycle.Kinds[1]
		}
		if _, err := w.Apply(t.Context(), command(lifecycle.Fail, lifecycle.Run{Ref: wrong, Attempt: 1})); err != lifecycle.ErrNotFound {
			t.Errorf("a worker's word about a run of the wrong kind: %v", err)
		}
	}
}

// Catches a deleted run that can still be seen or moved by people, or that workers are told is gone.
func TestDeletedRunsAreHiddenFromPeople(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, kind := range lifecycle.Kinds {
		run := w.in(t, lifecycle.Completed, w.creation(kind))
		w.apply(t, command(lifecycle.Delete, run))
		if _, err := w.Run(t.Context(), run.Ref, tenant); err != lifecycle.ErrNotFound {
			t.Errorf("reading a deleted run: %v", err)
		}
		if _, err := w.Apply(t.Context(), command(lifecycle.Place, run)); err != lifecycle.ErrNotFound {
			t.Errorf("placing a deleted run: %v", err)
		}
		if got := w.apply(t, command(lifecycle.Delete, run)); got.Outcome != lifecycle.Unchanged {
			t.Errorf("deleting again: %s", got.Outcome)
		}
		if got := w.apply(t, command(lifecycle.Fail, run)); got.Outcome != lifecycle.AlreadyTerminal {
			t.Errorf("a worker's late word: %s", got.Outcome)
		}
	}
}

// The fence, with attempts set behind the store's back as no endpoint can. Catches a guard that looks at the wrong attempt or at none.
func TestAttemptIsTheFence(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, c := range []struct {
		kind    lifecycle.Kind
		state   lifecycle.State
		verb    lifecycle.Verb
		refused bool // an older attempt too, because a person should know
	}{
		{lifecycle.WF2Des, lifecycle.Parsing, lifecycle.Parsed, false},
		{lifecycle.WF2Des, lifecycle.Assembling, lifecycle.Complete, false},
		{lifecycle.WF2Des, lifecycle.AwaitingConfirm, lifecycle.Fail, false},
		{lifecycle.WF2Des, lifecycle.AwaitingConfirm, lifecycle.Confirm, true},
		{lifecycle.WF2Des, lifecycle.AwaitingConfirm, lifecycle.Reject, true},
		{lifecycle.Code2WF, lifecycle.Processing, lifecycle.Complete, false},
		{lifecycle.Code2WF, lifecycle.Processing, lifecycle.Fail, false},
	} {
		run := w.in(t, c.state, w.creation(c.kind))
		w.exec(t, `UPDATE `+string(c.kind)+` SET attempt = 3 WHERE id = $1`, run.ID)
		run.Attempt = 3
		for _, attempt := range []int{2, 4} {
			cmd := command(c.verb, run)
			cmd.Attempt = attempt
			got, err := w.Apply(t.Context(), cmd)
			refused, _ := errors.AsType[*lifecycle.RefusedError](err)
			if attempt == 2 && !c.refused {
				if err != nil || got.Outcome != lifecycle.Superseded {
					t.Errorf("%s of an older attempt: %s, %v", c.verb, got.Outcome, err)
				}
			} else if refused == nil || refused.Code != lifecycle.AttemptMismatch || refused.Run.Attempt != 3 {
				t.Errorf("%s of attempt %d: %v, want an attempt mismatch", c.verb, attempt, err)
			}
			if diff := cmp.Diff(run, w.read(t, run.Ref)); diff != "" {
				t.Errorf("%s of attempt %d changed the row:\n%s", c.verb, attempt, diff)
			}
		}
		if got := w.apply(t, command(c.verb, run)); got.Outcome != lifecycle.Applied || got.Run.Attempt != 3 {
			t.Errorf("%s of the right attempt: %s, attempt %d", c.verb, got.Outcome, got.Run.Attempt)
		}
	}
}

// Catches a version made from a clock alone: a server whose clock was set back must still tell a newer row from an older one.
func TestVersionRisesUnderAClockSetBack(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, kind := range lifecycle.Kinds {
		run := w.in(t, lifecycle.Completed, w.creation(kind))
		w.exec(t, `UPDATE `+string(kind)+` SET updated_at = clock_timestamp() + interval '1 hour' WHERE id = $1`, run.ID)
		for _, verb := range []lifecycle.Verb{lifecycle.Place, lifecycle.Delete} {
			before := w.read(t, run.Ref).UpdatedAt
			got := w.apply(t, command(verb, run)).Run.UpdatedAt
			if got != before.Add(time.Microsecond) || w.read(t, run.Ref).UpdatedAt != got {
				t.Errorf("%s: version %v after %v", verb, got, before)
			}
		}
	}
}

// Catches a version that two quick steps share, or that differs between the row and the line that speaks of it.
func TestVersionRisesWithEveryStep(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.creation(lifecycle.WF2Des)
	run := w.in(t, lifecycle.Completed, c)
	rate := command(lifecycle.Rate, run)
	for i := range 40 {
		rate.Feedback = []lifecycle.FeedbackStatus{lifecycle.Fixed, lifecycle.Adopted}[i%2]
		if next := w.apply(t, rate).Run; !next.UpdatedAt.After(run.UpdatedAt) {
			t.Fatalf("version %v after %v", next.UpdatedAt, run.UpdatedAt)
		} else {
			run = next
		}
	}
	w.mustReplay(t, c.Run)
}
