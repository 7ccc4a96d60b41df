package store_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

const lease = time.Minute // longer than any test: leases end here when a test says so

// claimJobs claims jobs of all kinds of work.
func (w *world) claimJobs(t *testing.T, limit int) []store.Parcel[lifecycle.Job] {
	t.Helper()
	var all []store.Parcel[lifecycle.Job]
	for _, work := range []string{"wf2des", "des2wf", "code2wf"} {
		parcels, err := w.ClaimJobs(work)(t.Context(), limit-len(all), lease)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, parcels...)
	}
	slices.SortFunc(all, func(a, b store.Parcel[lifecycle.Job]) int { return int(a.ID - b.ID) })
	return all
}

func (w *world) claimEvents(t *testing.T, limit int) []store.Parcel[lifecycle.Announcement] {
	t.Helper()
	parcels, err := w.ClaimEvents(t.Context(), limit, lease)
	if err != nil {
		t.Fatal(err)
	}
	return parcels
}

// endLeases lets time pass.
func (w *world) endLeases(t *testing.T) {
	t.Helper()
	w.exec(t, `UPDATE outbox SET due_at = now() WHERE state = 'pending'`)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Catches a job that does not carry the row as it stands, its stage, its attempt or its trace, and jobs that do not leave oldest first.
func TestClaimJobs(t *testing.T) {
	t.Parallel()
	w := open(t)
	want := map[string][]lifecycle.Job{}
	for i := range 6 {
		kind, stage := lifecycle.WF2Des, lifecycle.StageParse
		if i%2 == 1 {
			kind, stage = lifecycle.Code2WF, lifecycle.StageGenerate
		}
		run := w.create(t, w.creation(kind))
		want[run.Work()] = append(want[run.Work()], lifecycle.Job{Run: run, Stage: stage, Attempt: 1, Traceparent: "00-creation"})
	}
	got := map[string][]lifecycle.Job{}
	for work := range want {
		for _, limit := range []int{1, 1, 100} {
			parcels, err := w.ClaimJobs(work)(t.Context(), limit, lease)
			must(t, err)
			for _, p := range parcels {
				got[work] = append(got[work], p.Load)
				if p.Tries != 1 {
					t.Errorf("a first claim is number %d", p.Tries)
				}
			}
			if len(parcels) > limit {
				t.Errorf("asked for %d and got %d", limit, len(parcels))
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if left := w.claimJobs(t, 100); len(left) > 0 {
		t.Errorf("%d jobs were given out twice", len(left))
	}
}

// Catches an announcement that differs from the timeline's line or names another tenant.
func TestClaimEvents(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, kind := range lifecycle.Kinds {
		run := w.in(t, lifecycle.Failed, w.creation(kind))
		for _, line := range w.timeline(t, run.Ref) {
			parcels := w.claimEvents(t, 100) // one at a time: the failure waits for the creation
			if len(parcels) != 1 {
				t.Fatalf("%d events were given out, want 1", len(parcels))
			}
			if diff := cmp.Diff(lifecycle.Announcement{Event: line, Tenant: tenant}, parcels[0].Load); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			must(t, w.Sent(t.Context(), []int64{parcels[0].ID}))
		}
	}
	if left := value[int](t, w, `SELECT count(*) FROM outbox WHERE destination = 'events'`); left != 0 {
		t.Errorf("%d announcements are left", left)
	}
}

// Catches a run's second message that overtakes the first, be it leased, waiting for another try or set aside; and a lane that waits
// for the other one.
func TestMessagesOfOneRunLeaveInOrder(t *testing.T) {
	t.Parallel()
	w := open(t)
	run := w.in(t, lifecycle.Failed, w.creation(lifecycle.WF2Des))
	other := w.create(t, w.creation(lifecycle.WF2Des))
	first := w.claimEvents(t, 100)
	if len(first) != 2 || first[0].Load.Event.Run != run.Ref || first[1].Load.Event.Run != other.Ref {
		t.Fatalf("first to leave: %v", first)
	}
	must(t, w.Retry(t.Context(), store.Failure{ID: first[0].ID, Tries: first[0].Tries, Wait: time.Hour, Cause: "down"}))
	if early := w.claimEvents(t, 100); len(early) > 0 {
		t.Errorf("%v left before an older message of its run", early[0].Load.Event)
	}
	w.exec(t, `UPDATE outbox SET due_at = now() WHERE id = $1`, first[0].ID)
	again := w.claimEvents(t, 100)
	if len(again) != 1 || again[0].ID != first[0].ID || again[0].Tries != 2 {
		t.Fatalf("after the wait: %v", again)
	}
	must(t, w.SetAside(t.Context(), again[0].ID, again[0].Tries, "never"))
	if next := w.claimEvents(t, 100); len(next) != 1 || next[0].Load.Event.What != lifecycle.WasFailed {
		t.Errorf("behind a message that was set aside: %v", next)
	}
}

// Catches an entry that stays lost when its relay dies, or that another relay gets while the lease holds.
func TestLeaseRunsOut(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.create(t, w.creation(lifecycle.Code2WF))
	short, err := w.ClaimJobs("code2wf")(t.Context(), 10, 150*time.Millisecond)
	if err != nil || len(short) != 1 {
		t.Fatalf("%v, %v", short, err)
	}
	claimed := time.Now()
	if others := w.claimJobs(t, 10); len(others) > 0 && time.Since(claimed) < 100*time.Millisecond {
		t.Fatal("another relay was given a leased job")
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		if again := w.claimJobs(t, 10); len(again) == 1 {
			if again[0].ID != short[0].ID || again[0].Tries != 2 {
				t.Errorf("after the lease: %+v", again[0])
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the lease does not end")
		}
	}
}

// Catches a relay that waits for another one's claim, or takes the same entries as soon as that is through.
func TestClaimPassesByWhatIsBeingClaimed(t *testing.T) {
	t.Parallel()
	w := open(t)
	busy, free := w.create(t, w.creation(lifecycle.Code2WF)), w.create(t, w.creation(lifecycle.Code2WF))
	release := w.hold(t, `UPDATE outbox SET tries = tries + 1, due_at = now() + interval '1 hour' WHERE run_id = $1`, busy.ID)
	if got := w.claimJobs(t, 100); len(got) != 1 || got[0].Load.Run.ID != free.ID {
		t.Errorf("while another relay claims the first job: %v", got)
	}
	release() // it died in the middle
	if got := w.claimJobs(t, 100); len(got) != 1 || got[0].Load.Run.ID != busy.ID {
		t.Errorf("after it: %v", got)
	}
}

// Several relays on one outbox: everything is carried, nothing by both, and each run's messages in order.
func TestRelaysShareWithoutDoubles(t *testing.T) {
	t.Parallel()
	w := open(t)
	const runs = 60
	for range runs {
		w.in(t, lifecycle.Cancelled, w.creation(lifecycle.WF2Des)) // two announcements each
	}
	var mu sync.Mutex
	carried := map[string][]int{} // run → the order in which its lines left
	var relays errgroup.Group
	total := func() (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, seqs := range carried {
			n += len(seqs)
		}
		return n
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for range 4 {
		relays.Go(func() error {
			for total() < 2*runs {
				parcels, err := w.ClaimEvents(ctx, 7, lease)
				if err != nil {
					return err
				}
				var ids []int64
				mu.Lock()
				for _, p := range parcels {
					ids = append(ids, p.ID)
					carried[p.Load.Event.Run.ID] = append(carried[p.Load.Event.Run.ID], p.Load.Event.Seq)
				}
				mu.Unlock()
				if err := w.Sent(ctx, ids); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(t, relays.Wait())
	for id, seqs := range carried {
		if !slices.Equal(seqs, []int{1, 2}) {
			t.Errorf("run %s: lines left as %v", id, seqs)
		}
	}
	if len(carried) != runs {
		t.Errorf("%d runs were announced, want %d", len(carried), runs)
	}
}

// Catches a relay that slept through its lease and then settles what another one holds by now.
func TestLateRelaySettlesNothing(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.create(t, w.creation(lifecycle.Code2WF))
	late := w.claimJobs(t, 1)[0]
	w.endLeases(t)
	now := w.claimJobs(t, 1)[0]
	w.unchanged(t, "a late relay", func() {
		must(t, w.Retry(t.Context(), store.Failure{ID: late.ID, Tries: late.Tries, Wait: 0, Cause: "late"}))
		must(t, w.SetAside(t.Context(), late.ID, late.Tries, "late"))
	})
	must(t, w.SetAside(t.Context(), now.ID, now.Tries, "never"))
	w.unchanged(t, "settling what is settled", func() {
		must(t, w.Retry(t.Context(), store.Failure{ID: now.ID, Tries: now.Tries, Wait: 0, Cause: "late"}))
		must(t, w.SetAside(t.Context(), now.ID, now.Tries, "late"))
	})
}

// Catches a failed entry that is tried again at once or never, or forgets why it failed.
func TestRetryWaits(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.create(t, w.creation(lifecycle.Code2WF))
	p := w.claimJobs(t, 1)[0]
	must(t, w.Retry(t.Context(), store.Failure{ID: p.ID, Tries: p.Tries, Wait: 90 * time.Second, Cause: "the queue is down"}))
	wait := value[float64](t, w, `SELECT extract(epoch FROM due_at - clock_timestamp()) FROM outbox WHERE id = $1`, p.ID)
	if wait < 60 || wait > 90 {
		t.Errorf("due again in %v s, want 90", wait)
	}
	if cause := value[string](t, w, `SELECT last_error FROM outbox WHERE id = $1`, p.ID); cause != "the queue is down" {
		t.Errorf("the cause is %q", cause)
	}
}

// Catches many that are put back as if they were one: with another's wait or cause, or although another relay holds one of them by now;
// and a cause that PostgreSQL cannot keep and for whose sake none of them is put back.
func TestManyAreRetriedAtOnce(t *testing.T) {
	t.Parallel()
	w := open(t)
	for range 4 {
		w.create(t, w.creation(lifecycle.Code2WF))
	}
	p := w.claimJobs(t, 4)
	w.exec(t, `UPDATE outbox SET tries = 2 WHERE id = $1`, p[1].ID)
	must(t, w.Retry(t.Context()))
	must(t, w.Retry(t.Context(),
		store.Failure{ID: p[3].ID, Tries: 1, Wait: 3 * time.Hour, Cause: "busy, {\"down\"}, NULL"},
		store.Failure{ID: p[1].ID, Tries: 1, Wait: 2 * time.Hour, Cause: "late"},
		store.Failure{ID: p[0].ID, Tries: 1, Wait: time.Hour, Cause: "not\x00 text: \xff\xfe!"}))
	got := w.columns(t, `SELECT id, tries, round(extract(epoch FROM due_at - clock_timestamp()) / 3600)::bigint AS hours, coalesce(last_error, '') AS cause
FROM outbox WHERE destination = 'jobs' ORDER BY id`)
	want := []map[string]any{
		{"id": p[0].ID, "tries": int64(1), "hours": int64(1), "cause": "not text: \uFFFD!"}, {"id": p[1].ID, "tries": int64(2), "hours": int64(0), "cause": ""},
		{"id": p[2].ID, "tries": int64(1), "hours": int64(0), "cause": ""}, {"id": p[3].ID, "tries": int64(1), "hours": int64(3), "cause": "busy, {\"down\"}, NULL"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Catches a job sent for nobody: the run ended or was queued anew before the job left. It is kept, marked skipped, and the next
// attempt's own job leaves.
func TestUnwantedJobsAreSkipped(t *testing.T) {
	t.Parallel()
	w := open(t)
	ended := w.in(t, lifecycle.Cancelled, w.creation(lifecycle.WF2Des))
	deleted := w.in(t, lifecycle.Failed, w.creation(lifecycle.Code2WF))
	w.apply(t, command(lifecycle.Delete, deleted))
	again := w.create(t, w.creation(lifecycle.WF2Des))
	again = w.apply(t, command(lifecycle.Requeue, again)).Run

	if first := w.claimJobs(t, 100); len(first) > 0 {
		t.Errorf("jobs for nobody were given out: %v", first)
	}
	skipped := w.columns(t, `SELECT run_id FROM outbox WHERE destination = 'jobs' AND state = 'skipped' AND settled_at IS NOT NULL ORDER BY id`)
	want := []map[string]any{{"run_id": ended.ID}, {"run_id": deleted.ID}, {"run_id": again.ID}}
	if diff := cmp.Diff(want, skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	second := w.claimJobs(t, 100)
	if len(second) != 1 || second[0].Load.Attempt != 2 || !cmp.Equal(second[0].Load.Run, again) {
		t.Errorf("the job of the second attempt: %v", second)
	}
}

// Catches a run that waits for ever for a job that was set aside, and one that is failed although it does not wait for that job any more.
func TestStrandedJobs(t *testing.T) {
	t.Parallel()
	w := open(t)
	var waiting []store.StrandedJob
	for _, kind := range lifecycle.Kinds {
		run := w.create(t, w.creation(kind))
		waiting = append(waiting, store.StrandedJob{Run: run.Ref, Attempt: 1, State: run.State})
	}
	ended, requeued := w.create(t, w.creation(lifecycle.WF2Des)), w.create(t, w.creation(lifecycle.WF2Des))
	for _, p := range w.claimJobs(t, 100) {
		must(t, w.SetAside(t.Context(), p.ID, p.Tries, "never"))
	}
	for _, p := range w.claimEvents(t, 100) {
		must(t, w.SetAside(t.Context(), p.ID, p.Tries, "never")) // an announcement strands nobody
	}
	w.apply(t, command(lifecycle.Cancel, ended))
	w.apply(t, command(lifecycle.Requeue, requeued))
	w.create(t, w.creation(lifecycle.WF2Des)) // its job just waits

	for limit, want := range map[int][]store.StrandedJob{100: waiting, 1: waiting[:1]} {
		got, err := w.StrandedJobs(t.Context(), limit)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("at most %d: %v (-want +got):\n%s", limit, err, diff)
		}
	}
	for _, stranded := range waiting {
		w.apply(t, lifecycle.Command{Verb: lifecycle.Fail, Run: stranded.Run, Attempt: stranded.Attempt, By: worker, Message: "It could not be started."})
	}
	if got, err := w.StrandedJobs(t.Context(), 100); len(got) > 0 || err != nil {
		t.Errorf("after they were failed: %v, %v", got, err)
	}
}

// Catches a backlog that counts what is settled, or mixes up the lanes or the ages.
func TestBacklogs(t *testing.T) {
	t.Parallel()
	w := open(t)
	none := []store.Backlog{{Destination: "designs"}, {Destination: "documents"}, {Destination: "events"}, {Destination: "jobs"}}
	if got, err := w.Backlogs(t.Context()); !slices.Equal(got, none) || err != nil {
		t.Errorf("an empty outbox has the backlogs %v, %v", got, err)
	}
	for range 3 {
		w.create(t, w.creation(lifecycle.Code2WF))
	}
	w.in(t, lifecycle.Cancelled, w.creation(lifecycle.WF2Des))
	parcels := w.claimJobs(t, 100) // which skips one
	must(t, w.SetAside(t.Context(), parcels[0].ID, parcels[0].Tries, "never"))
	w.exec(t, `UPDATE outbox SET created_at = now() - interval '1 hour' WHERE id = $1`, parcels[1].ID)
	w.exec(t, `UPDATE outbox SET created_at = now() - interval '2 hours' WHERE id = $1`, parcels[0].ID)

	got, err := w.Backlogs(t.Context())
	must(t, err)
	for i := range got {
		got[i].OldestAge = float64(int(got[i].OldestAge / 600)) // in ten minutes
	}
	want := []store.Backlog{none[0], none[1], {Destination: "events", Pending: 5}, {Destination: "jobs", Pending: 2, SetAside: 1, OldestAge: 6}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Catches entries that are forgotten although they were not sent, and a forgetting that fails for nothing.
func TestSentForgetsOnlyWhatItNames(t *testing.T) {
	t.Parallel()
	w := open(t)
	for range 3 {
		w.create(t, w.creation(lifecycle.Code2WF))
	}
	p := w.claimJobs(t, 3)
	must(t, w.Sent(t.Context(), []int64{p[0].ID, p[2].ID}))
	must(t, w.Sent(t.Context(), []int64{p[0].ID}))
	must(t, w.Sent(t.Context(), nil))
	got := value[string](t, w, `SELECT string_agg(id::text, ' ') FROM outbox WHERE destination = 'jobs'`)
	if got != fmt.Sprint(p[1].ID) {
		t.Errorf("entries %s are left, want %d", got, p[1].ID)
	}
}
