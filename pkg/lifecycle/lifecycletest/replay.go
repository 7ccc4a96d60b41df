// Package lifecycletest rebuilds a run from its timeline, so that a test can hold the one against the other.
package lifecycletest

import (
	"fmt"

	"framerun.dev/pkg/lifecycle"
)

// Replay is the run that a timeline tells of. given holds the fields that the caller of the creation gave; everything else
// comes from the events. It is written from what the events promise, not from how decisions are made.
//
// Error: the timeline does not hang together (a gap, a step from a state that the run was not in, a version that did not rise, a
// late word that changed something).
func Replay(given lifecycle.Run, events []lifecycle.Event) (lifecycle.Run, error) {
	run := given
	run.State = lifecycle.None
	for i, e := range events {
		if err := follows(run, e, i+1); err != nil {
			return run, fmt.Errorf("line %d (%s, %s): %w", e.Seq, e.What, e.Outcome, err)
		}
		if e.Outcome == lifecycle.Applied {
			run = step(run, e)
		}
	}
	return run, nil
}

// follows says what keeps e from being the seq-th line of a timeline that has led to run.
func follows(run lifecycle.Run, e lifecycle.Event, seq int) error {
	applied := e.Outcome == lifecycle.Applied
	switch {
	case e.Run != run.Ref:
		return fmt.Errorf("it is about %v, not %v", e.Run, run.Ref)
	case e.Seq != seq:
		return fmt.Errorf("it should be line %d", seq)
	case (seq == 1) != (applied && e.What == lifecycle.WasCreated):
		return fmt.Errorf("a timeline begins with its creation, and has no other")
	case e.From != run.State:
		return fmt.Errorf("it starts from %q, but the run is %q", e.From, run.State)
	case applied && !e.Version.After(run.UpdatedAt):
		return fmt.Errorf("version %v does not rise above %v", e.Version, run.UpdatedAt)
	case !applied && (e.To != e.From || !e.Version.Equal(run.UpdatedAt)):
		return fmt.Errorf("a late word changed the run")
	}
	return nil
}

func step(run lifecycle.Run, e lifecycle.Event) lifecycle.Run {
	run.State, run.Attempt = e.To, e.Attempt
	run.UpdatedAt, run.UpdatedBy = e.Version, e.By.Name
	switch e.What {
	case lifecycle.WasCreated:
		run.CreatedAt, run.CreatedBy = e.Version, e.By.Name
	case lifecycle.WasCompleted, lifecycle.WasFailed:
		run.ResultURL, run.ErrorMessage, run.FlagCount = e.Data.ResultURL, e.Data.ErrorMessage, e.Data.FlagCount
		if run.Kind == lifecycle.WF2Des {
			run.Score, run.ScoreVersion = e.Data.Score, e.Data.ScoreVersion
		}
	case lifecycle.WasPlaced:
		run.MaterializedAt = &e.At
	case lifecycle.WasRated:
		run.Feedback = e.Data.Feedback
	case lifecycle.WasDeleted:
		run.DeletedAt, run.DeletedBy = &e.At, &e.By.Name
	}
	return run
}
