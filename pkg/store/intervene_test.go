package store_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/lifecycle/lifecycletest"
	"framerun.dev/pkg/store"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

var operator = lifecycle.Actor{Voice: lifecycle.Backend, Name: platform.UserAPI}

func (w *world) entries(t *testing.T, f store.EntryFilter) []store.Entry {
	t.Helper()
	entries, err := w.Entries(t.Context(), f, 1000)
	must(t, err)
	return entries
}

// entry is the run's one entry for the destination.
func (w *world) entry(t *testing.T, run lifecycle.Run, destination string) store.Entry {
	t.Helper()
	entries := w.entries(t, store.EntryFilter{Destination: destination, RunIDs: []string{run.ID}})
	if len(entries) != 1 {
		t.Fatalf("%d entries for %s, want one: %v", len(entries), destination, entries)
	}
	return entries[0]
}

// aside sets the run's entry aside, as a relay does.
func (w *world) aside(t *testing.T, run lifecycle.Run, destination string) store.Entry {
	t.Helper()
	w.exec(t, `UPDATE outbox SET state = 'set_aside', settled_at = now(), last_error = 'refused', tries = 3 WHERE run_id = $1 AND destination = $2`,
		run.ID, destination)
	return w.entry(t, run, destination)
}

// Catches a list that leaves out, mixes up or misreads entries, and a filter that does not filter.
func TestEntries(t *testing.T) {
	t.Parallel()
	w := open(t)
	a, b := w.create(t, w.creation(lifecycle.WF2Des)), w.create(t, w.creation(lifecycle.Code2WF))
	w.exec(t, `UPDATE outbox SET state = 'skipped', settled_at = now() WHERE run_id = $1 AND destination = 'jobs'`, b.ID)
	says := func(f store.EntryFilter) string {
		var all []string
		for _, e := range w.entries(t, f) {
			all = append(all, e.Run.ID+" "+e.Says()+" "+string(e.State))
		}
		return strings.NewReplacer(a.ID, "a", b.ID, "b").Replace(strings.Join(all, ", "))
	}
	for _, c := range []struct {
		filter store.EntryFilter
		want   string
	}{
		{store.EntryFilter{}, "a jobs parse pending, a events 1 pending, b jobs generate skipped, b events 1 pending"},
		{store.EntryFilter{States: []store.EntryState{store.Skipped, store.SetAside}}, "b jobs generate skipped"},
		{store.EntryFilter{Destination: "jobs"}, "a jobs parse pending, b jobs generate skipped"},
		{store.EntryFilter{RunIDs: []string{b.ID}}, "b jobs generate skipped, b events 1 pending"},
		{store.EntryFilter{RunIDs: []string{b.ID}, States: []store.EntryState{store.Pending}, Destination: "events"}, "b events 1 pending"},
		{store.EntryFilter{RunIDs: []string{"nobody"}}, ""},
	} {
		if got := says(c.filter); got != c.want {
			t.Errorf("%+v: %s; want %s", c.filter, got, c.want)
		}
	}
	e := w.aside(t, a, "jobs")
	if e.LastError != "refused" || e.Tries != 3 || e.SettledAt == nil || e.Attempt != 1 || e.Run != a.Ref {
		t.Errorf("an entry is read as %+v", e)
	}
	if again, err := w.Entry(t.Context(), e.ID); err != nil || !cmp.Equal(e, again) {
		t.Errorf("by its id the entry is %+v, %v", again, err)
	}
	if _, err := w.Entry(t.Context(), 99999); !errors.Is(err, store.ErrNoEntry) {
		t.Errorf("an entry that is not there: %v", err)
	}
}

// Catches an intervention in a state that does not allow it, one that is not in the timeline under the operator's name, one that touches
// the run, and one that loses the entry's place or the relays' fence.
func TestIntervene(t *testing.T) {
	t.Parallel()
	w := open(t)
	run := w.in(t, lifecycle.Parsing, w.creation(lifecycle.WF2Des))
	before := w.aside(t, run, "jobs")

	after, err := w.Intervene(t.Context(), store.RetryEntry, before.ID, operator)
	must(t, err)
	want := before
	want.State, want.SettledAt, want.DueAt = store.Pending, nil, after.DueAt
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if claimed := w.claimJobs(t, 10); len(claimed) != 1 || claimed[0].ID != before.ID || claimed[0].Tries != before.Tries+1 {
		t.Errorf("the relay is given %+v", claimed)
	}
	if _, err = w.Intervene(t.Context(), store.RetryEntry, before.ID, operator); !isRefused(err) {
		t.Errorf("a pending entry is retried by hand: %v", err)
	}
	skipped, err := w.Intervene(t.Context(), store.SkipEntry, before.ID, operator)
	if err != nil || skipped.State != store.Skipped || skipped.SettledAt == nil {
		t.Errorf("skipping: %+v, %v", skipped, err)
	}
	for _, i := range []store.Intervention{store.RetryEntry, store.SkipEntry} {
		if _, err = w.Intervene(t.Context(), i, before.ID, operator); !isRefused(err) {
			t.Errorf("%s of a skipped entry: %v", i, err)
		}
		if _, err = w.Intervene(t.Context(), i, 99999, operator); !errors.Is(err, store.ErrNoEntry) {
			t.Errorf("%s of nothing: %v", i, err)
		}
	}
	w.noted(t, run, "delivery_retried jobs parse", "delivery_skipped jobs parse")
}

func isRefused(err error) bool {
	_, ok := errors.AsType[*store.EntryRefusedError](err)
	return ok
}

// noted checks that the timeline ends with the operator's lines, that the row is as it was, and that the one replays to the other.
func (w *world) noted(t *testing.T, run lifecycle.Run, want ...string) {
	t.Helper()
	timeline, err := w.Timeline(t.Context(), run.Ref)
	must(t, err)
	var lines []string
	for _, e := range timeline {
		if e.Outcome == lifecycle.Noted && e.By == operator && e.From == run.State && e.To == run.State && e.Attempt == run.Attempt {
			lines = append(lines, string(e.What)+" "+*e.Data.Delivery)
		}
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("the operator's lines (-want +got):\n%s", diff)
	}
	stands, err := w.RunOfAnyTenant(t.Context(), run.Ref)
	if diff := cmp.Diff(run, stands); err != nil || diff != "" {
		t.Errorf("the run changed: %v\n%s", err, diff)
	}
	if _, err := lifecycletest.Replay(given(run), timeline); err != nil {
		t.Errorf("the timeline does not replay: %v", err)
	}
}

// given is what of a run was asked for.
func given(run lifecycle.Run) lifecycle.Run {
	return lifecycle.Run{Ref: run.Ref, Tenant: run.Tenant, FigmaFileKey: run.FigmaFileKey, ScreenID: run.ScreenID, WFNodeID: run.WFNodeID,
		Edge: run.Edge, TriggerSurface: run.TriggerSurface, AutoConfirm: run.AutoConfirm, PageImportID: run.PageImportID}
}

// Catches a job that is sent out again for a run which no longer waits for it.
func TestRetryOfAnUnwantedJobIsRefused(t *testing.T) {
	t.Parallel()
	w := open(t)
	ended := w.in(t, lifecycle.Parsing, w.creation(lifecycle.WF2Des))
	w.aside(t, ended, "jobs")
	w.apply(t, command(lifecycle.Fail, ended))
	requeued := w.in(t, lifecycle.Parsing, w.creation(lifecycle.WF2Des))
	old := w.aside(t, requeued, "jobs")
	w.apply(t, command(lifecycle.Requeue, requeued))
	for _, id := range []int64{w.entry(t, ended, "jobs").ID, old.ID} {
		if _, err := w.Intervene(t.Context(), store.RetryEntry, id, operator); !isRefused(err) {
			t.Errorf("retried all the same: %v", err)
		}
	}
	// An event of an ended run is worth telling at any time.
	w.exec(t, `DELETE FROM outbox WHERE destination = 'events' AND run_id = $1 AND seq > 1`, ended.ID)
	if _, err := w.Intervene(t.Context(), store.RetryEntry, w.aside(t, ended, "events").ID, operator); err != nil {
		t.Error(err)
	}
}

// Operators, workers and relays at the same run at the same time. Catches two lines with one number, a deadlock, and an entry that two
// operators skip.
func TestInterventionsAtOnce(t *testing.T) {
	t.Parallel()
	w := open(t)
	run := w.in(t, lifecycle.Parsing, w.creation(lifecycle.WF2Des))
	var ids []int64
	for _, e := range w.entries(t, store.EntryFilter{RunIDs: []string{run.ID}}) {
		ids = append(ids, e.ID)
	}
	skips := make(chan error, 8*len(ids))
	var all errgroup.Group
	for range 8 {
		all.Go(func() error {
			for _, id := range ids {
				_, err := w.Intervene(context.WithoutCancel(t.Context()), store.SkipEntry, id, operator)
				skips <- err
			}
			return nil
		})
		all.Go(func() error {
			_, err := w.Apply(context.WithoutCancel(t.Context()), command(lifecycle.Parsed, run))
			return err
		})
		all.Go(func() error {
			_, err := w.ClaimEvents(context.WithoutCancel(t.Context()), 10, time.Millisecond)
			return err
		})
	}
	must(t, all.Wait())
	close(skips)
	done := 0
	for err := range skips {
		if err == nil {
			done++
		} else if !isRefused(err) {
			t.Error(err)
		}
	}
	if done != len(ids) {
		t.Errorf("%d skips of %d entries were told to have been the first", done, len(ids))
	}
	timeline, err := w.Timeline(t.Context(), run.Ref)
	must(t, err)
	if _, err := lifecycletest.Replay(given(run), timeline); err != nil || !slices.IsSortedFunc(timeline, func(a, b lifecycle.Event) int { return a.Seq - b.Seq }) {
		t.Errorf("the timeline: %v", err)
	}
}

// A worker's word about the run is being stored when an operator reaches for its job. Catches an intervention that does not wait for the
// run's lock, and so would give two lines one number.
func TestInterventionWaitsForTheRun(t *testing.T) {
	t.Parallel()
	w := open(t)
	run := w.in(t, lifecycle.Parsing, w.creation(lifecycle.WF2Des))
	entry := w.entry(t, run, "jobs")
	tx := w.sql.MustBeginTx(t.Context(), nil)
	defer tx.Rollback()
	tx.MustExec(`SELECT FROM wf2des WHERE id = $1 FOR UPDATE`, run.ID)
	done := make(chan error, 1)
	go func() {
		_, err := w.Intervene(context.WithoutCancel(t.Context()), store.SkipEntry, entry.ID, operator)
		done <- err
	}()
	for waiting := false; !waiting; {
		select {
		case err := <-done:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		must(t, w.sql.GetContext(t.Context(), &waiting, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`))
	}
	tx.MustExec(`INSERT INTO run_event (kind, run_id, seq, what, outcome, actor_kind, actor, from_state, to_state, attempt, version, at)
		SELECT kind, run_id, 2, 'completed', 'superseded', 'worker', actor, to_state, to_state, 0, version, at FROM run_event WHERE run_id = $1`, run.ID)
	must(t, tx.Commit())
	must(t, <-done)
	w.noted(t, run, "delivery_skipped jobs parse")
}
