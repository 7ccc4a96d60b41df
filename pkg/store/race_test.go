package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"framerun.dev/pkg/lifecycle"
)

// contest is a run over which several callers fight at the same moment. endings are the only truths that they may be told.
type contest struct {
	kind    lifecycle.Kind
	state   lifecycle.State
	rivals  []lifecycle.Verb
	rounds  int
	endings []string
}

var contests = []contest{
	{lifecycle.WF2Des, lifecycle.AwaitingConfirm, slices.Repeat([]lifecycle.Verb{lifecycle.Confirm}, 50), 4, []string{
		"1 confirm applied, 49 confirm unchanged"}},
	{lifecycle.WF2Des, lifecycle.AwaitingConfirm, []lifecycle.Verb{lifecycle.Confirm, lifecycle.Cancel}, 40, []string{
		"1 cancel applied, 1 confirm applied",
		"1 cancel applied, 1 confirm refused, it is cancelled"}},
	{lifecycle.WF2Des, lifecycle.AwaitingConfirm, []lifecycle.Verb{lifecycle.Confirm, lifecycle.Reject}, 40, []string{
		"1 confirm applied, 1 reject refused, it is assembling",
		"1 confirm refused, it is rejected, 1 reject applied"}},
	{lifecycle.WF2Des, lifecycle.AwaitingConfirm, []lifecycle.Verb{lifecycle.Confirm, lifecycle.Fail}, 40, []string{
		"1 confirm applied, 1 fail applied",
		"1 confirm refused, it is failed, 1 fail applied"}},
	{lifecycle.WF2Des, lifecycle.Assembling, []lifecycle.Verb{lifecycle.Cancel, lifecycle.Complete}, 40, []string{
		"1 cancel applied, 1 complete already_terminal",
		"1 cancel refused, it is completed, 1 complete applied"}},
	{lifecycle.WF2Des, lifecycle.Assembling, []lifecycle.Verb{lifecycle.Complete, lifecycle.Fail}, 40, []string{
		"1 complete applied, 1 fail already_terminal",
		"1 complete already_terminal, 1 fail applied"}},
	{lifecycle.WF2Des, lifecycle.Assembling, slices.Repeat([]lifecycle.Verb{lifecycle.Complete}, 20), 4, []string{
		"1 complete applied, 19 complete duplicate"}},
	{lifecycle.WF2Des, lifecycle.Parsing, slices.Repeat([]lifecycle.Verb{lifecycle.Parsed}, 20), 4, []string{
		"1 parsed applied, 19 parsed duplicate"}},
	{lifecycle.WF2Des, lifecycle.Parsing, slices.Repeat([]lifecycle.Verb{lifecycle.Cancel}, 20), 4, []string{
		"1 cancel applied, 19 cancel unchanged"}},
	{lifecycle.WF2Des, lifecycle.Completed, []lifecycle.Verb{lifecycle.Place, lifecycle.Place}, 40, []string{
		"1 place applied, 1 place unchanged"}},
	{lifecycle.WF2Des, lifecycle.Completed, []lifecycle.Verb{lifecycle.Delete, lifecycle.Place}, 40, []string{
		"1 delete applied, 1 place applied",
		"1 delete applied, 1 place not found"}},
	{lifecycle.Code2WF, lifecycle.Processing, []lifecycle.Verb{lifecycle.Complete, lifecycle.Fail}, 40, []string{
		"1 complete applied, 1 fail already_terminal",
		"1 complete already_terminal, 1 fail applied"}},
	{lifecycle.Code2WF, lifecycle.Completed, []lifecycle.Verb{lifecycle.Delete, lifecycle.Place}, 40, []string{
		"1 delete applied, 1 place applied",
		"1 delete applied, 1 place not found"}},
}

// Of each step exactly one caller is told that it applied; the others are told what is so; and the timeline, written by all of them, has
// no gap and replays to the row. Catches a decision made on a row that is not locked, and a guard that is missing.
func TestRaces(t *testing.T) {
	t.Parallel()
	for _, c := range contests {
		t.Run(fmt.Sprintf("%s %s %d×%v", c.kind, c.state, len(c.rivals), slices.Compact(slices.Clone(c.rivals))), func(t *testing.T) {
			t.Parallel()
			w := open(t)
			for range c.rounds {
				w.fight(t, c)
			}
		})
	}
}

func (w *world) fight(t *testing.T, c contest) {
	t.Helper()
	asked := w.creation(c.kind)
	run := w.in(t, c.state, asked)
	before := len(w.timeline(t, run.Ref))

	told := make([]string, len(c.rivals))
	start := make(chan struct{})
	var all sync.WaitGroup
	for i, verb := range c.rivals {
		all.Go(func() {
			<-start
			got, err := w.Apply(t.Context(), command(verb, run))
			told[i] = string(verb) + " " + answer(got.Outcome, err)
		})
	}
	close(start)
	all.Wait()

	ending := tally(told)
	if !slices.Contains(c.endings, ending) {
		t.Errorf("told %q, want one of %q", ending, c.endings)
	}
	applied := 0
	for _, line := range w.timeline(t, run.Ref)[before:] {
		if line.Outcome == lifecycle.Applied {
			applied++
		}
	}
	if claimed := strings.Count(strings.Join(told, ","), " applied"); applied != claimed {
		t.Errorf("%d callers were told that they made a step, the timeline holds %d steps", claimed, applied)
	}
	w.mustReplay(t, asked.Run)
}

// answer is what a caller learned.
func answer(outcome lifecycle.Outcome, err error) string {
	refused, ok := errors.AsType[*lifecycle.RefusedError](err)
	switch {
	case err == nil:
		return string(outcome)
	case errors.Is(err, lifecycle.ErrNotFound):
		return "not found"
	case ok:
		return "refused, it is " + string(refused.Run.State)
	}
	return err.Error()
}

// tally counts equal answers, in alphabetical order.
func tally(told []string) string {
	counts := map[string]int{}
	for _, s := range told {
		counts[s]++
	}
	var parts []string
	for _, s := range slices.Sorted(slices.Values(told)) {
		if n := counts[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
			counts[s] = 0
		}
	}
	return strings.Join(parts, ", ")
}
