package lifecycle_test

import (
	"errors"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/google/go-cmp/cmp"
)

// Catches a creation that starts in the wrong state or asks for the wrong work, believes a state or an attempt that the caller
// sneaked in, or forgets who asked.
func TestBegin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  lifecycle.Kind
		state lifecycle.State
		job   lifecycle.Stage
	}{
		{lifecycle.WF2Des, lifecycle.Parsing, lifecycle.StageParse},
		{lifecycle.Code2WF, lifecycle.Processing, lifecycle.StageGenerate},
	} {
		draft := lifecycle.Run{
			Ref: lifecycle.Ref{Kind: c.kind, ID: "the run"}, Tenant: lifecycle.Tenant{OrganizationID: 1, ProjectID: 2},
			FigmaFileKey: "file", AutoConfirm: c.kind == lifecycle.WF2Des, State: lifecycle.Completed, Attempt: 9,
			CreatedBy: "somebody else", UpdatedBy: "somebody else",
		}
		run := draft
		run.State, run.Attempt, run.CreatedBy, run.UpdatedBy = c.state, 1, "the one who acts", "the one who acts"
		want := lifecycle.Decision{Outcome: lifecycle.Applied, Next: run, Job: c.job, Event: &lifecycle.Event{
			Run: run.Ref, What: lifecycle.WasCreated, Outcome: lifecycle.Applied, By: acted, To: c.state, Attempt: 1, Traceparent: "00-trace",
		}}
		if diff := cmp.Diff(want, lifecycle.Begin(draft, acted, "00-trace")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.kind, diff)
		}
	}
}

// Catches progress that keeps a worker busy for nobody, or sends one away that is still wanted.
func TestHear(t *testing.T) {
	t.Parallel()
	for _, state := range lifecycle.States {
		run := lifecycle.Run{State: state, Attempt: 2}
		for attempt, want := range map[int]lifecycle.Outcome{1: lifecycle.Superseded, 2: lifecycle.Applied, 3: ""} {
			if attempt == 2 && run.Ended() {
				want = lifecycle.AlreadyTerminal
			}
			got, err := lifecycle.Hear(run, attempt)
			refused, _ := errors.AsType[*lifecycle.RefusedError](err)
			if got != want || (refused != nil) != (attempt == 3) {
				t.Errorf("%s, attempt 2, progress of %d: %q, %v; want %q", state, attempt, got, err, want)
			}
			if refused != nil && (refused.Code != lifecycle.AttemptMismatch || !cmp.Equal(refused.Run, run)) {
				t.Errorf("%s: the refusal says %v", state, refused)
			}
		}
	}
}

// Catches errors that cannot be told apart or say nothing.
func TestErrorsSpeak(t *testing.T) {
	t.Parallel()
	run := lifecycle.Run{Ref: lifecycle.Ref{Kind: lifecycle.WF2Des, ID: "the run"}, State: lifecycle.Parsing, Attempt: 1, UpdatedAt: time.Time{}}
	for err, want := range map[error]string{
		&lifecycle.InvalidError{Field: "/screenId", Reason: "is missing"}:                                  "/screenId: is missing",
		&lifecycle.OpenRunError{Existing: run}:                                                             "run the run is still open for this node",
		&lifecycle.RefusedError{Code: lifecycle.StateConflict, Run: run, Reason: "it has moved on"}:        "state_conflict: it has moved on",
		&lifecycle.RefusedError{Code: lifecycle.AttemptMismatch, Run: run, Reason: "attempt 1 is the one"}: "attempt_mismatch: attempt 1 is the one",
	} {
		if err.Error() != want {
			t.Errorf("%T says %q, want %q", err, err, want)
		}
	}
}
