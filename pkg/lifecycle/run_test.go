package lifecycle_test

import (
	"math"
	"slices"
	"testing"

	"framerun.dev/pkg/lifecycle"
)

// Catches NaN and whatever else PostgreSQL's numeric(5,4) would take and JSON could not print, and a wrong rounding.
func TestNewScore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f    float64
		want lifecycle.Score
		ok   bool
		text string
	}{
		{0, 0, true, "0"},
		{math.Copysign(0, -1), 0, true, "0"},
		{1, 10000, true, "1"},
		{0.5, 5000, true, "0.5"},
		{0.8125, 8125, true, "0.8125"},
		{0.1, 1000, true, "0.1"},
		{0.3333333, 3333, true, "0.3333"},
		{0.12345, 1235, true, "0.1235"}, // halves go up, as in PostgreSQL
		{0.00004, 0, true, "0"},
		{0.00005, 1, true, "0.0001"},
		{0.99995, 10000, true, "1"},
		{0.99994, 9999, true, "0.9999"},
		{math.SmallestNonzeroFloat64, 0, true, "0"},
		{-math.SmallestNonzeroFloat64, 0, false, "0"},
		{math.Nextafter(1, 2), 0, false, "0"},
		{1.00001, 0, false, "0"}, // 1 if it were rounded first
		{-0.00001, 0, false, "0"},
		{9.99995, 0, false, "0"}, // rounds to more than five digits
		{math.NaN(), 0, false, "0"},
		{math.Inf(1), 0, false, "0"},
		{math.Inf(-1), 0, false, "0"},
	} {
		got, ok := lifecycle.NewScore(c.f)
		if got != c.want || ok != c.ok || got.String() != c.text {
			t.Errorf("NewScore(%v) = %d, %t, as text %q; want %d, %t, %q", c.f, got, ok, got, c.want, c.ok, c.text)
		}
	}
}

// Catches a score that changes when it is printed and read again.
func TestEveryScoreSurvivesItsText(t *testing.T) {
	t.Parallel()
	for s := lifecycle.Score(0); s <= 10000; s++ {
		if again, ok := lifecycle.NewScore(s.Float()); !ok || again != s || len(s.String()) > len("0.1234") {
			t.Fatalf("score %d is %s, which is %d again (%t)", int(s), s, int(again), ok)
		}
	}
}

// Catches a state that shows another status or phase than the seed's type codes say, and a state that was forgotten.
func TestStateWords(t *testing.T) {
	t.Parallel()
	want := []struct {
		state  lifecycle.State
		status lifecycle.Status
		phase  lifecycle.Phase
		open   bool
	}{
		{"parsing", "processing", "parse", true},
		{"awaiting_confirm", "processing", "awaiting_confirm", true},
		{"assembling", "processing", "assemble", true},
		{"processing", "processing", "", true},
		{"completed", "completed", "", false},
		{"failed", "failed", "", false},
		{"rejected", "rejected", "", false},
		{"cancelled", "cancelled", "", false},
	}
	var states []lifecycle.State
	for _, w := range want {
		states = append(states, w.state)
		s := w.state
		if s.Status() != w.status || s.Phase() != w.phase || s.Open() != w.open || (lifecycle.Run{State: s}).Ended() == w.open {
			t.Errorf("%s: status %q, phase %q, open %t; want %v", s, s.Status(), s.Phase(), s.Open(), w)
		}
	}
	if !slices.Equal(states, lifecycle.States) {
		t.Errorf("States are %v, want %v", lifecycle.States, states)
	}
	if none := lifecycle.None; none.Open() || none.Status() != "" || none.Phase() != "" {
		t.Errorf("None: status %q, phase %q, open %t", none.Status(), none.Phase(), none.Open())
	}
}

var statesOf = map[lifecycle.Kind][]lifecycle.State{
	lifecycle.WF2Des: {
		lifecycle.Parsing, lifecycle.AwaitingConfirm, lifecycle.Assembling,
		lifecycle.Completed, lifecycle.Failed, lifecycle.Rejected, lifecycle.Cancelled,
	},
	lifecycle.Code2WF: {lifecycle.Processing, lifecycle.Completed, lifecycle.Failed},
}

// Catches an action that is offered and refused, or possible and hidden, for every row that a run can be.
func TestNextActionsAreWhatDecideWouldApply(t *testing.T) {
	t.Parallel()
	for _, kind := range lifecycle.Kinds {
		for _, state := range statesOf[kind] {
			for _, auto := range []bool{false, kind == lifecycle.WF2Des} {
				for _, run := range variants(kind, auto, state) {
					if got, want := run.NextActions(), applicable(t, run); !slices.Equal(got, want) {
						t.Errorf("%s %s, auto-confirm %t, deleted %t, placed %t: offers %v, but %v would apply",
							kind, state, auto, run.DeletedAt != nil, run.MaterializedAt != nil, got, want)
					}
				}
			}
		}
	}
}

// Catches null instead of [] for a run that allows nothing.
func TestNextActionsIsNeverNil(t *testing.T) {
	t.Parallel()
	if got := (lifecycle.Run{Ref: lifecycle.Ref{Kind: lifecycle.Code2WF}, State: lifecycle.Processing}).NextActions(); got == nil || len(got) > 0 {
		t.Errorf("NextActions = %#v, want an empty list", got)
	}
}

// applicable asks Decide for each verb of a person, in the order of the lifecycle's table.
func applicable(t interface{ Errorf(string, ...any) }, run lifecycle.Run) []lifecycle.Verb {
	var can []lifecycle.Verb
	for _, verb := range []lifecycle.Verb{
		lifecycle.Confirm, lifecycle.Reject, lifecycle.Cancel, lifecycle.Place, lifecycle.Rate, lifecycle.Delete,
	} {
		feedback := lifecycle.Fixed
		if run.Feedback != nil && *run.Feedback == feedback {
			feedback = lifecycle.Adopted // the other word would still change something
		}
		d, err := lifecycle.Decide(run, lifecycle.Command{Verb: verb, Run: run.Ref, By: acted, Attempt: run.Attempt, Feedback: feedback}, run.UpdatedAt.Add(1))
		if err == nil && d.Outcome == lifecycle.Applied {
			can = append(can, verb)
		}
	}
	return can
}

// Catches a run that has no queue of its name.
func TestWork(t *testing.T) {
	t.Parallel()
	for want, run := range map[string]lifecycle.Run{
		"wf2des":  {Ref: lifecycle.Ref{Kind: lifecycle.WF2Des}, Edge: lifecycle.EdgeWF2Des},
		"des2wf":  {Ref: lifecycle.Ref{Kind: lifecycle.WF2Des}, Edge: lifecycle.EdgeDes2WF},
		"code2wf": {Ref: lifecycle.Ref{Kind: lifecycle.Code2WF}},
	} {
		if got := run.Work(); got != want {
			t.Errorf("Work is %q, want %q", got, want)
		}
	}
}
