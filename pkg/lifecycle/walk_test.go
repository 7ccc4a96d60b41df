package lifecycle_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/lifecycle/lifecycletest"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Whatever is asked of a run in whatever order, what is promised of its whole life holds after each step. Catches what a table of
// single steps cannot: a way through several steps that ends where no run may be.
func TestRandomLives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := beginning(t)
		for range rapid.IntRange(1, 40).Draw(t, "commands") {
			l.obey(t, anyCommand(t, l.run))
		}
		replayed, err := lifecycletest.Replay(l.given, l.timeline)
		if diff := cmp.Diff(l.run, replayed); diff != "" || err != nil {
			t.Fatalf("the timeline does not replay to the run: %v (-run +replayed):\n%s", err, diff)
		}
	})
}

// life is a run together with all that has happened to it.
type life struct {
	given    lifecycle.Run
	run      lifecycle.Run
	timeline []lifecycle.Event
	clock    time.Time
}

func beginning(t *rapid.T) *life {
	given := lifecycle.Run{
		Ref:    lifecycle.Ref{Kind: rapid.SampledFrom(lifecycle.Kinds).Draw(t, "kind"), ID: "the run"},
		Tenant: lifecycle.Tenant{OrganizationID: 1, ProjectID: 2}, FigmaFileKey: "file",
	}
	given.AutoConfirm = given.Kind == lifecycle.WF2Des && rapid.Bool().Draw(t, "auto-confirm")
	d := lifecycle.Begin(given, acted, "")
	d.Next.CreatedAt, d.Next.UpdatedAt, d.Event.At, d.Event.Version = born, born, born, born // which is the store's part
	l := &life{given: given, run: d.Next, clock: born}
	l.write(d.Event)
	return l
}

func (l *life) write(e *lifecycle.Event) {
	if e != nil {
		e.Seq = len(l.timeline) + 1
		l.timeline = append(l.timeline, *e)
	}
}

func anyCommand(t *rapid.T, run lifecycle.Run) lifecycle.Command {
	cmd := lifecycle.Command{
		Verb: rapid.SampledFrom(verbs).Draw(t, "verb"),
		Run:  run.Ref,
		By:   lifecycle.Actor{Voice: lifecycle.User, Name: rapid.SampledFrom([]string{"Ada", "Grace", "a worker"}).Draw(t, "by")},
		// Mostly the right attempt, so that lives get far.
		Attempt:  run.Attempt + rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, -1, 1}).Draw(t, "attempt"),
		Message:  rapid.SampledFrom([]string{"It failed.", "It failed otherwise."}).Draw(t, "message"),
		Feedback: rapid.SampledFrom([]lifecycle.FeedbackStatus{lifecycle.Fixed, lifecycle.Adopted}).Draw(t, "feedback"),
		Result: lifecycle.Result{
			FlagCount:    rapid.Ptr(rapid.IntRange(0, 9), true).Draw(t, "flags"),
			ScoreVersion: rapid.Ptr(rapid.SampledFrom([]string{"ds@1.0", "ds@2.0"}), true).Draw(t, "version"),
		},
	}
	score := lifecycle.Score(rapid.IntRange(0, 10000).Draw(t, "score"))
	cmd.Result.Score = &score
	if cmd.Verb == lifecycle.Complete || rapid.Bool().Draw(t, "artifact") {
		cmd.Result.Key = new(rapid.SampledFrom([]string{"a key", "another key"}).Draw(t, "key"))
	}
	if cmd.Verb == lifecycle.Fail && rapid.Bool().Draw(t, "guarded") {
		cmd.If = &lifecycle.Guard{
			State:  rapid.SampledFrom(append(statesOf[run.Kind], run.State, run.State, run.State)).Draw(t, "seen"),
			Silent: time.Duration(rapid.IntRange(0, 600).Draw(t, "silent")),
			Heard:  run.UpdatedAt.Add(time.Duration(rapid.IntRange(-600, 600).Draw(t, "heard"))),
		}
	}
	return cmd
}

// obey lets Decide have cmd and looks at what it made of the run.
func (l *life) obey(t *rapid.T, cmd lifecycle.Command) {
	was := l.run
	l.clock = l.clock.Add(time.Duration(rapid.IntRange(1, 1000).Draw(t, "later")))
	d, err := lifecycle.Decide(was, cmd, l.clock)
	if refused, ok := errors.AsType[*lifecycle.RefusedError](err); ok && !cmp.Equal(refused.Run, was) {
		t.Fatalf("%s was refused with another run than the one that stands: %v", cmd.Verb, refused.Run)
	}
	if err != nil {
		return
	}
	l.write(d.Event)
	l.run = d.Next
	if d.Outcome != lifecycle.Applied {
		if diff := cmp.Diff(was, l.run); diff != "" {
			t.Fatalf("%s was %s and still changed the run:\n%s", cmd.Verb, d.Outcome, diff)
		}
		return
	}
	if g := cmd.If; g != nil && (was.State != g.State || was.Attempt != cmd.Attempt || l.clock.Sub(was.UpdatedAt) < g.Silent ||
		was.State != lifecycle.AwaitingConfirm && l.clock.Sub(g.Heard) < g.Silent && g.Silent > 0) {
		t.Errorf("a %s run in %s was ended in spite of its guard %+v", was.Kind, was.State, *g)
	}
	for _, broken := range violations(was, l.run, d) {
		t.Errorf("%s of a %s run that was %s: %s", cmd.Verb, was.Kind, was.State, broken)
	}
	if got, want := l.run.NextActions(), applicable(t, l.run); !slices.Equal(got, want) {
		t.Errorf("a run that is %s offers %v, but %v would apply", l.run.State, got, want)
	}
}

// progress orders the states: within an attempt a run only goes up, and within an end it stays.
var progress = map[lifecycle.State]int{lifecycle.Processing: 1, lifecycle.Parsing: 1, lifecycle.AwaitingConfirm: 2, lifecycle.Assembling: 3}

// violations names the promises that an applied step has broken.
func violations(was, is lifecycle.Run, d lifecycle.Decision) []string {
	var broken []string
	must := func(holds bool, promise string) {
		if !holds {
			broken = append(broken, promise)
		}
	}
	must(is.UpdatedAt.After(was.UpdatedAt), "updated_at rises with every change")
	must(is.UpdatedBy == d.Event.By.Name, "updated_by is who made the step")
	must(is.Attempt == was.Attempt || is.Attempt == was.Attempt+1 && d.Event.What == lifecycle.WasRequeued, "attempt rises by requeue alone, by one")
	must(was.Ended() || is.Ended() || is.Attempt > was.Attempt || progress[is.State] > progress[was.State], "an open run goes forward")
	must(!was.Ended() || sameEnd(was, is), "the first ending stands for ever")
	must(was.MaterializedAt == nil || was.MaterializedAt == is.MaterializedAt, "the first placement stands for ever")
	must(was.DeletedAt == nil, "a deleted run is left alone")

	must(is.MaterializedAt == nil || is.State == lifecycle.Completed, "only a completed run is placed")
	must(is.Feedback == nil || is.State == lifecycle.Completed && is.Kind == lifecycle.WF2Des, "only a completed wf2des run is rated")
	must(is.DeletedAt == nil || is.Ended(), "an open run is not deleted")
	must((is.DeletedAt == nil) == (is.DeletedBy == nil), "who deleted is known")
	must(is.State != lifecycle.Completed || is.ResultURL != nil && is.ErrorMessage == nil, "a completed run has a result")
	must(is.State != lifecycle.Failed || is.ErrorMessage != nil, "a failed run says why")
	must(is.State != lifecycle.Rejected || was.Ended() || was.State == lifecycle.AwaitingConfirm, "only what awaits confirmation is rejected")
	must(slices.Contains(statesOf[is.Kind], is.State), "each kind keeps to its states")
	must(is.Kind == lifecycle.WF2Des || is.Score == nil && is.ScoreVersion == nil, "code2wf has no score")
	must(d.Job == lifecycle.NoJob || d.Job == stageOf[is.State], "a job fits the state that waits for it")
	return broken
}

var stageOf = map[lifecycle.State]lifecycle.Stage{
	lifecycle.Parsing: lifecycle.StageParse, lifecycle.Assembling: lifecycle.StageAssemble, lifecycle.Processing: lifecycle.StageGenerate,
}

// sameEnd reports whether two rows ended alike.
func sameEnd(a, b lifecycle.Run) bool {
	end := func(r lifecycle.Run) []any {
		return []any{r.State, r.Attempt, r.ResultURL, r.ErrorMessage, r.FlagCount, r.Score, r.ScoreVersion}
	}
	return reflect.DeepEqual(end(a), end(b))
}
