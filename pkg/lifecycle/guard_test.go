package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/google/go-cmp/cmp"
)

// Every run meets every guard: what it was seen in, the attempt that was seen, and each way in which the silence can fall short of the
// deadline or reach it. Catches a run that is ended although it has moved on, although its worker has spoken, or because the designer
// thinks while a worker is quiet; and one that is spared for ever.
func TestGuardOnEveryRun(t *testing.T) {
	t.Parallel()
	const limit = time.Minute
	for _, kind := range lifecycle.Kinds {
		for _, state := range statesOf[kind] {
			for _, run := range variants(kind, false, state) {
				for _, seen := range lifecycle.States {
					for _, attempt := range []int{run.Attempt - 1, run.Attempt, run.Attempt + 1} {
						for _, silence := range silences(limit) {
							checkGuard(t, run, seen, attempt, limit, silence)
						}
					}
				}
			}
		}
	}
}

// silence is how long ago the run changed and its worker spoke (0: never), and whether that is a miss while a worker is awaited.
type silence struct {
	sinceChange, sinceWord time.Duration
	late                   bool
}

func silences(limit time.Duration) []silence {
	return []silence{
		{limit - 1, 0, false}, {limit, 0, true}, {10 * limit, 0, true},
		{10 * limit, limit - 1, false}, {10 * limit, limit, true},
		{limit - 1, 10 * limit, false}, // the word was about an earlier state
		{10 * limit, -limit, false},    // noted after the clock was read
	}
}

func checkGuard(t *testing.T, run lifecycle.Run, seen lifecycle.State, attempt int, limit time.Duration, s silence) {
	t.Helper()
	now := run.UpdatedAt.Add(s.sinceChange)
	guard := lifecycle.Guard{State: seen, Silent: limit}
	if s.sinceWord != 0 {
		guard.Heard = now.Add(-s.sinceWord)
	}
	late := s.late
	if run.State == lifecycle.AwaitingConfirm {
		late = s.sinceChange >= limit
	}
	same := run.State == seen && run.Attempt == attempt && !run.Ended()
	for _, g := range []lifecycle.Guard{guard, {State: seen}} {
		about := fmt.Sprintf("%s %s, deleted %t, seen %s at attempt %d of %d: guard %+v", run.Kind, run.State, run.DeletedAt != nil, seen,
			attempt, run.Attempt, g)
		cmd := lifecycle.Command{Verb: lifecycle.Fail, Run: run.Ref, By: acted, Attempt: attempt, Message: "a message", If: &g}
		got, err := lifecycle.Decide(run, cmd, now)
		if want := same && (late || g.Silent == 0); !want {
			if diff := cmp.Diff(lifecycle.Decision{Outcome: lifecycle.Spared, Next: run}, got); diff != "" || err != nil {
				t.Errorf("%s: it should be left alone: %v\n%s", about, err, diff)
			}
			continue
		}
		cmd.If = nil
		plain, plainErr := lifecycle.Decide(run, cmd, now)
		if diff := cmp.Diff(plain, got); diff != "" || (err == nil) != (plainErr == nil) {
			t.Errorf("%s: a guard that holds decides something else: %v\n%s", about, err, diff)
		}
	}
}

// Catches a dead job that ends a run which has gone on without it, and one that leaves its run open.
func TestAwaitsJob(t *testing.T) {
	t.Parallel()
	for _, kind := range lifecycle.Kinds {
		for _, auto := range []bool{false, true} {
			for _, state := range statesOf[kind] {
				run := lifecycle.Run{Ref: lifecycle.Ref{Kind: kind}, AutoConfirm: auto, State: state}
				var awaited []lifecycle.Stage
				for _, stage := range []lifecycle.Stage{lifecycle.NoJob, lifecycle.StageParse, lifecycle.StageAssemble, lifecycle.StageGenerate, "else"} {
					if run.AwaitsJob(stage) {
						awaited = append(awaited, stage)
					}
				}
				want := map[lifecycle.State][]lifecycle.Stage{lifecycle.Parsing: {lifecycle.StageParse},
					lifecycle.Assembling: {lifecycle.StageAssemble}, lifecycle.Processing: {lifecycle.StageGenerate}}[state]
				if auto && state == lifecycle.Assembling {
					want = []lifecycle.Stage{lifecycle.StageParse, lifecycle.StageAssemble}
				}
				if diff := cmp.Diff(want, awaited); diff != "" {
					t.Errorf("%s %s, auto-confirm %t (-want +got):\n%s", kind, state, auto, diff)
				}
			}
		}
	}
}

// Catches deadlines that are on although none is set, or off although one is.
func TestDeadlinesAny(t *testing.T) {
	t.Parallel()
	for want, all := range map[bool][]lifecycle.Deadlines{
		false: {nil, {}, {lifecycle.Parsing: 0, lifecycle.Processing: 0}},
		true:  {{lifecycle.Parsing: 0, lifecycle.Processing: 1}, {lifecycle.AwaitingConfirm: time.Hour}},
	} {
		for _, d := range all {
			if d.Any() != want {
				t.Errorf("%v: %t", d, d.Any())
			}
		}
	}
}
