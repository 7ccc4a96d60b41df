package main

import (
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

// A list shows what PostgreSQL says now, hint or no hint; runs that it knows in that version it does not read again. Catches a list that
// believes its memory, and one that has none.
func TestListsKnowWhatHasNotChanged(t *testing.T) {
	t.Parallel()
	q := still(t)
	runs := []lifecycle.Run{q.In(t, lifecycle.WF2Des, lifecycle.Parsing), q.In(t, lifecycle.WF2Des, lifecycle.AwaitingConfirm), q.In(t, lifecycle.WF2Des, lifecycle.Completed)}
	list := func() []any { return q.get(t, "/v1/projects/1/wf2des").JSON(t)["items"].([]any) }
	list()
	before := q.Asked()
	list()
	known := q.Asked() - before
	next := q.Step(t, runs[1], lifecycle.Confirm).Run
	before = q.Asked()
	if phase := list()[1].(map[string]any)["phase"]; phase != "assemble" || next.State != lifecycle.Assembling {
		t.Errorf("after a step of which nobody told, the list shows %v", phase)
	}
	if learned := q.Asked() - before; learned <= known {
		t.Errorf("%d bytes were asked about an unchanged list, %d about a changed one", known, learned)
	}
	q.Step(t, runs[2], lifecycle.Delete)
	if items := list(); len(items) != 2 {
		t.Errorf("a deleted run is among %v", items)
	}
}

// A run that moves on between the two looks of a list makes it read in one piece, so that no filter lets a run pass that it should not.
func TestAListThatMovesIsReadInOnePiece(t *testing.T) {
	t.Parallel()
	at := time.Now()
	one, two := newView(lifecycle.Run{Ref: lifecycle.Ref{ID: "1"}, UpdatedAt: at}), newView(lifecycle.Run{Ref: lifecycle.Ref{ID: "2"}, UpdatedAt: at})
	listed := []store.Listed{{ID: "1", UpdatedAt: at}, {ID: "2", UpdatedAt: at}}
	later := newView(lifecycle.Run{Ref: lifecycle.Ref{ID: "2"}, UpdatedAt: at.Add(1)})
	for about, c := range map[string]struct {
		found map[string]*view
		whole bool
	}{"there": {map[string]*view{"2": two}, true}, "gone": {nil, false}, "moved on": {map[string]*view{"2": later}, false}} {
		views := []*view{one, nil}
		if whole := fill(views, listed, c.found); whole != c.whole || whole && views[1] != two {
			t.Errorf("%s: %t, %v", about, whole, views)
		}
	}
}

// What stands in lists is kept for the next one, and costs no looks. Catches a list that makes a thousand runs hot.
func TestListsMakeNothingHot(t *testing.T) {
	t.Parallel()
	q := still(t)
	run := q.In(t, lifecycle.Code2WF, lifecycle.Completed)
	q.get(t, "/v1/projects/1/code2wf")
	if all := q.hot.sweep(); len(all) != 0 || q.hot.count() != 1 {
		t.Errorf("%v is looked at, %d kept; want none and 1", all, q.hot.count())
	}
	q.hot.mu.Lock()
	for _, e := range q.hot.runs[run.Ref] {
		e.listed = e.listed.Add(-2 * shelf)
	}
	q.hot.mu.Unlock()
	if q.hot.sweep(); q.hot.count() != 0 {
		t.Error("what nobody lists any more is kept")
	}
	if q.hot.size != 0 {
		t.Errorf("%d bytes are counted", q.hot.size)
	}
}
