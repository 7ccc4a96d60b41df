package store_test

import (
	"slices"
	"testing"
	"time"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"github.com/google/go-cmp/cmp"
)

var backend = lifecycle.Actor{Voice: lifecycle.Backend, Name: platform.UserWorker}

// openStates are what deadlines are about, by kind.
var openStates = map[lifecycle.Kind][]lifecycle.State{
	lifecycle.WF2Des:  {lifecycle.Parsing, lifecycle.AwaitingConfirm, lifecycle.Assembling},
	lifecycle.Code2WF: {lifecycle.Processing},
}

var hours = lifecycle.Deadlines{lifecycle.Parsing: time.Hour, lifecycle.AwaitingConfirm: 2 * time.Hour, lifecycle.Assembling: 3 * time.Hour,
	lifecycle.Processing: 4 * time.Hour}

// ago sets the run's last change back by PostgreSQL's clock.
func (w *world) ago(t *testing.T, run lifecycle.Run, d time.Duration) {
	t.Helper()
	w.exec(t, `UPDATE `+string(run.Kind)+` SET updated_at = now() - $2 * interval '1 microsecond' WHERE id = $1`, run.ID, d.Microseconds())
}

// heardAgo notes a pulse of the past.
func (w *world) heardAgo(t *testing.T, run lifecycle.Run, attempt int, d time.Duration) {
	t.Helper()
	w.exec(t, `INSERT INTO run_pulse VALUES ($1, $2, $3, now() - $4 * interval '1 microsecond')`, run.Kind, run.ID, attempt, d.Microseconds())
}

// overdue are the ids of all that is overdue, in the order of the list, read in pages of two.
func (w *world) overdue(t *testing.T, deadlines lifecycle.Deadlines) (ids []string) {
	t.Helper()
	for last := (store.OverdueRun{}); ; {
		page, err := w.Overdue(t.Context(), deadlines, last, 2)
		must(t, err)
		for _, run := range page {
			ids = append(ids, run.ID)
		}
		if len(page) < 2 {
			return ids
		}
		last = page[1]
	}
}

// Catches a run that is listed before its time or not at all, under another state's deadline, out of order, twice or lost between two
// pages; a deadline that is off and still counts; and a look that changes something.
func TestOverdueListsWhatIsSilent(t *testing.T) {
	t.Parallel()
	w := open(t)
	var want []string
	at := 100 * time.Hour
	late := func(run lifecycle.Run) {
		at -= time.Hour
		w.ago(t, run, at)
		want = append(want, run.ID)
	}
	for range 3 {
		for kind, states := range openStates {
			for _, state := range states {
				late(w.in(t, state, w.creation(kind)))
				w.ago(t, w.in(t, state, w.creation(kind)), hours[state]-time.Minute)
			}
			w.ago(t, w.in(t, lifecycle.Failed, w.creation(kind)), at)
			w.ago(t, w.in(t, lifecycle.Completed, w.creation(kind)), at)
		}
	}
	w.unchanged(t, "a look", func() {
		if diff := cmp.Diff(want, w.overdue(t, hours)); diff != "" {
			t.Errorf("overdue (-want +got):\n%s", diff)
		}
		for _, off := range []lifecycle.Deadlines{nil, {lifecycle.Parsing: 0, lifecycle.Processing: 200 * time.Hour}} {
			if got := w.overdue(t, off); len(got) > 0 {
				t.Errorf("without a deadline: %v", got)
			}
		}
	})
	all, err := w.Overdue(t.Context(), lifecycle.Deadlines{lifecycle.Processing: time.Hour}, store.OverdueRun{}, 1)
	must(t, err)
	run := w.read(t, all[0].Ref)
	if diff := cmp.Diff([]store.OverdueRun{{Ref: run.Ref, Tenant: run.Tenant, State: lifecycle.Processing, Attempt: 1, UpdatedAt: run.UpdatedAt,
		Since: run.UpdatedAt, Limit: time.Hour}}, all); diff != "" {
		t.Errorf("what is told of one (-want +got):\n%s", diff)
	}
}

// Catches progress that does not push the deadline, or pushes it for ever; an older worker's that pushes the newer one's; and a worker's
// that pushes the designer's.
func TestProgressPushesTheDeadline(t *testing.T) {
	t.Parallel()
	w := open(t)
	for kind, states := range openStates {
		for _, state := range states {
			silent, spoke, older := w.in(t, state, w.creation(kind)), w.in(t, state, w.creation(kind)), w.in(t, state, w.creation(kind))
			for _, run := range []lifecycle.Run{silent, spoke, older} {
				w.ago(t, run, 10*time.Hour)
			}
			w.heardAgo(t, silent, 1, hours[state])
			w.heardAgo(t, spoke, 1, hours[state]-time.Minute)
			w.exec(t, `UPDATE `+string(kind)+` SET attempt = 2 WHERE id = $1`, older.ID)
			w.heardAgo(t, older, 1, time.Minute)
			want := []string{silent.ID, spoke.ID, older.ID}
			if state.Working() {
				want = []string{silent.ID, older.ID}
			}
			got := w.overdue(t, lifecycle.Deadlines{state: hours[state]})
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", kind, state, diff)
			}
			w.heardAndEnded(t, spoke, state)
		}
	}
}

// heardAndEnded holds the guard against the list: it must say the same of a run that spoke.
func (w *world) heardAndEnded(t *testing.T, spoke lifecycle.Run, state lifecycle.State) {
	t.Helper()
	seen := store.OverdueRun{Ref: spoke.Ref, State: state, Attempt: 1, Limit: hours[state]}
	want := lifecycle.Applied
	if state.Working() {
		want = lifecycle.Spared
	}
	if got := w.apply(t, seen.End(backend, "Too late.")); got.Outcome != want {
		t.Errorf("the end of a %s run whose worker has spoken in time: %s, want %s", state, got.Outcome, want)
	}
}

// Catches an ending that is not the backend's, that says something else than it was told, or that leaves the node blocked; and a late
// worker who is told anything but the truth.
func TestEndOfASilentRun(t *testing.T) {
	t.Parallel()
	w := open(t)
	for kind, states := range openStates {
		for _, state := range states {
			asked := w.creation(kind)
			run := w.in(t, state, asked)
			tick := lifecycle.Deadlines{state: time.Millisecond}
			until(t, "the run is overdue", func() bool { return slices.Contains(w.overdue(t, tick), run.ID) })
			list, err := w.Overdue(t.Context(), tick, store.OverdueRun{}, 1)
			must(t, err)
			got := w.apply(t, list[0].End(backend, "Too late."))
			if got.Outcome != lifecycle.Applied || got.Run.State != lifecycle.Failed || *got.Run.ErrorMessage != "Too late." {
				t.Errorf("%s: %+v", state, got)
			}
			lines := w.timeline(t, run.Ref)
			if last := lines[len(lines)-1]; last.What != lifecycle.WasFailed || last.By != backend || last.From != state || last.Attempt != 1 {
				t.Errorf("%s: the timeline ends with %+v", state, last)
			}
			if got := w.apply(t, command(lifecycle.Complete, run)); got.Outcome != lifecycle.AlreadyTerminal || got.Run.State != lifecycle.Failed {
				t.Errorf("%s: a late worker is told %s, %s", state, got.Outcome, got.Run.State)
			}
			if noted, err := w.Pulse(t.Context(), run.Ref, 1); noted || err != nil {
				t.Errorf("%s: a late worker's pulse: %t, %v", state, noted, err)
			}
			w.mustReplay(t, asked.Run)
			again := w.creation(kind)
			again.Run.WFNodeID = asked.Run.WFNodeID
			w.apply(t, command(lifecycle.Fail, w.create(t, again))) // the node is free at once
		}
	}
}

// Whatever happens between the look and the end of a reaper that sleeps there, it is not the reaper who decides. Catches a guard that
// forgets the state, the attempt or the silence, and a spared run that has changed or whose timeline speaks of it.
func TestReaperThatSleepsBetweenLookAndEnd(t *testing.T) {
	t.Parallel()
	w := open(t)
	for name, tc := range map[string]struct {
		kind  lifecycle.Kind
		state lifecycle.State
		what  func(lifecycle.Run)
	}{
		"parsed":    {lifecycle.WF2Des, lifecycle.Parsing, func(r lifecycle.Run) { w.apply(t, command(lifecycle.Parsed, r)) }},
		"confirmed": {lifecycle.WF2Des, lifecycle.AwaitingConfirm, func(r lifecycle.Run) { w.apply(t, command(lifecycle.Confirm, r)) }},
		"requeued":  {lifecycle.WF2Des, lifecycle.Assembling, func(r lifecycle.Run) { w.apply(t, command(lifecycle.Requeue, r)) }},
		"cancelled": {lifecycle.WF2Des, lifecycle.Assembling, func(r lifecycle.Run) { w.apply(t, command(lifecycle.Cancel, r)) }},
		"completed": {lifecycle.Code2WF, lifecycle.Processing, func(r lifecycle.Run) { w.apply(t, command(lifecycle.Complete, r)) }},
		"failed":    {lifecycle.Code2WF, lifecycle.Processing, func(r lifecycle.Run) { w.apply(t, command(lifecycle.Fail, r)) }},
		"heard": {lifecycle.Code2WF, lifecycle.Processing, func(r lifecycle.Run) {
			if noted, err := w.Pulse(t.Context(), r.Ref, 1); !noted || err != nil {
				t.Errorf("a pulse in time: %t, %v", noted, err)
			}
		}},
	} {
		run := w.in(t, tc.state, w.creation(tc.kind))
		w.ago(t, run, 10*time.Hour)
		list, err := w.Overdue(t.Context(), lifecycle.Deadlines{tc.state: hours[tc.state]}, store.OverdueRun{}, 10)
		must(t, err)
		if len(list) != 1 || list[0].Ref != run.Ref {
			t.Fatalf("%s: the look shows %v", name, list)
		}
		tc.what(run)
		w.unchanged(t, name+" in between", func() {
			got := w.apply(t, list[0].End(backend, "Too late."))
			if diff := cmp.Diff(store.Applied{Outcome: lifecycle.Spared, Run: w.read(t, run.Ref)}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
}
