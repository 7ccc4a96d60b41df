package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"github.com/google/go-cmp/cmp"
)

// Catches an entry that is forgotten before it was sent, or sent and not forgotten, and a lane that carries the other's.
func TestClaimSendForget(t *testing.T) {
	t.Parallel()
	w := open(t)
	ids := w.create(t, 3)
	var taken basket
	counted := map[string]int{}
	lane := w.jobs(sender[lifecycle.Job](func(ctx context.Context, jobs []lifecycle.Job) []error {
		if waiting := w.outbox(t, "jobs"); len(waiting) != 3 {
			t.Errorf("while they are sent %d entries are kept, want 3", len(waiting))
		}
		if until, ok := ctx.Deadline(); !ok || time.Until(until) >= Lease {
			t.Errorf("sending may take until %v, which is longer than the lease", until)
		}
		return taken.take(jobs)
	}))
	lane.Count = func(result string, n int) { counted[result] += n }
	lane.SetAside = func() { t.Error("nothing was set aside") }
	if n := lane.round(t.Context()); n != 3 {
		t.Errorf("%d arrived, want 3", n)
	}
	if diff := cmp.Diff(ids, taken.all()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if left := w.outbox(t, "jobs"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if events := w.outbox(t, "events"); len(events) != 3 || events[0].Tries != 0 {
		t.Errorf("the other lane's entries: %v", events)
	}
	if n := lane.round(t.Context()); n != 0 {
		t.Errorf("%d arrived out of an empty outbox", n)
	}
	if diff := cmp.Diff(map[string]int{"sent": 3}, counted); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

// Catches waits that do not grow, shrink again, overflow, or outlive a fault by much.
func TestWait(t *testing.T) {
	t.Parallel()
	want := []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}
	for i, d := range want {
		if got := wait(i+1, errors.New("down")); got != d {
			t.Errorf("after %d failures: %v, want %v", i+1, got, d)
		}
	}
	for _, tries := range []int{8, 11, 12, 64, 65, 1000, 1 << 30} {
		if got := wait(tries, errors.New("down")); got != longestWait {
			t.Errorf("after %d failures: %v, want %v", tries, got, longestWait)
		}
		if got := wait(tries, fmt.Errorf("not yet: %w", lifecycle.ErrTooEarly)); got < 30*time.Second || got > earlyWait {
			t.Errorf("too early for the %d. time: %v", tries, got)
		}
	}
}

// Catches a failed entry that is lost, tried at once, tried ever more slowly or without a cause for the operator; and neighbours that
// suffer with it.
func TestFailedEntriesWaitLongerEachTime(t *testing.T) {
	t.Parallel()
	w := open(t)
	ids := w.create(t, 3)
	counted := map[string]int{}
	failures := 0
	lane := w.jobs(sender[lifecycle.Job](func(_ context.Context, jobs []lifecycle.Job) []error {
		errs := make([]error, len(jobs))
		for i, j := range jobs {
			if j.Run.ID == ids[1] {
				failures++
				errs[i] = fmt.Errorf("failure %d", failures)
			}
		}
		return errs
	}))
	lane.Count = func(result string, n int) { counted[result] += n }
	for try := 1; try <= 7; try++ {
		lane.round(t.Context())
		left := w.outbox(t, "jobs")
		if len(left) != 1 || left[0].RunID != ids[1] || left[0].Tries != try || left[0].State != "pending" || left[0].LastError == nil ||
			*left[0].LastError != fmt.Sprintf("failure %d", try) {
			t.Fatalf("after try %d: %+v", try, left)
		}
		if due := wait(try, nil).Seconds(); left[0].Wait > due || left[0].Wait < due-3 { // a busy machine takes its time to look
			t.Errorf("after try %d it is due in %v s, want %v", try, left[0].Wait, due)
		}
		if try < 7 {
			w.endLeases(t)
		}
	}
	if lane.round(t.Context()); failures != 7 {
		t.Error("it was tried again at once")
	}
	if diff := cmp.Diff(map[string]int{"sent": 2, "retried": 7}, counted); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

// Catches an outdated message that is sent for ever, counted as sent, or set aside as if somebody had to look at it; one that comes too
// early and keeps the lane busy for ever; and neighbours that suffer with either.
func TestOutdatedAndTooEarly(t *testing.T) {
	t.Parallel()
	w := open(t)
	ids := w.create(t, 4)
	causes := map[string]error{ids[0]: lifecycle.ErrOutdated, ids[2]: lifecycle.ErrTooEarly}
	counted, sends := map[string]int{}, 0
	lane := w.jobs(sender[lifecycle.Job](func(_ context.Context, jobs []lifecycle.Job) []error {
		errs := make([]error, len(jobs))
		for i, j := range jobs {
			if cause := causes[j.Run.ID]; cause != nil {
				errs[i] = fmt.Errorf("sender: %w", cause)
			}
		}
		sends++
		return errs
	}))
	lane.Count = func(result string, n int) { counted[result] += n }
	lane.SetAside = func() { t.Error("nothing is to be set aside") }
	for range 12 {
		lane.round(t.Context())
		w.endLeases(t)
	}
	left := w.outbox(t, "jobs")
	if len(left) != 2 || left[0].State != "skipped" || left[0].LastError == nil || *left[0].LastError != "sender: this is outdated" ||
		left[1].State != "pending" || left[1].Tries != 12 {
		t.Fatalf("left: %+v", left)
	}
	if diff := cmp.Diff(map[string]int{"sent": 2, "skipped": 1, "retried": 12}, counted); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	lane.round(t.Context())
	if left := w.outbox(t, "jobs"); left[1].Wait < 60 {
		t.Errorf("after 13 tries it is due again in %v s", left[1].Wait)
	}
}

// Catches poison that is sent for ever, thrown away, or holds up its neighbours, and a stranded run of which nobody is told.
func TestWhatWillNeverBeTakenIsSetAside(t *testing.T) {
	t.Parallel()
	w := open(t)
	ids := w.create(t, 5)
	poison := map[string]bool{ids[0]: true, ids[3]: true}
	told := 0
	counted := map[string]int{}
	lane := w.jobs(sender[lifecycle.Job](func(_ context.Context, jobs []lifecycle.Job) []error {
		errs := make([]error, len(jobs))
		for i, j := range jobs {
			if poison[j.Run.ID] {
				errs[i] = fmt.Errorf("too odd: %w", lifecycle.ErrUndeliverable)
			}
		}
		return errs
	}))
	lane.Count = func(result string, n int) { counted[result] += n }
	lane.SetAside = func() {
		told++
		if stranded, err := w.StrandedJobs(t.Context(), 10); len(stranded) != 2 || err != nil {
			t.Errorf("when it is told, %d runs are stranded (%v), want 2", len(stranded), err)
		}
	}
	lane.round(t.Context())
	w.endLeases(t)
	lane.round(t.Context())
	left := w.outbox(t, "jobs")
	if count(left) != "map[set_aside:2]" || left[0].RunID != ids[0] || left[1].RunID != ids[3] || left[0].LastError == nil {
		t.Errorf("left: %+v", left)
	}
	if diff := cmp.Diff(map[string]int{"sent": 3, "set_aside": 2}, counted); diff != "" || told != 1 {
		t.Errorf("told %d times; counted (-want +got):\n%s", told, diff)
	}
}

// Catches a lane that waits for the other one's destination.
func TestLanesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.create(t, 150)
	stuck := make(chan struct{}, 100)
	run(t, w.jobs(sender[lifecycle.Job](func(ctx context.Context, jobs []lifecycle.Job) []error {
		stuck <- struct{}{}
		<-ctx.Done() // a queue that hangs
		return slices.Repeat([]error{ctx.Err()}, len(jobs))
	})))
	<-stuck
	start := time.Now()
	run(t, w.events(sender[lifecycle.Announcement](func(_ context.Context, events []lifecycle.Announcement) []error {
		return make([]error, len(events))
	})))
	eventually(t, "all events have left", func() bool { return len(w.outbox(t, "events")) == 0 })
	if took := time.Since(start); took > 1900*time.Millisecond {
		t.Errorf("it took %v: as long as the jobs hang", took)
	}
	if left := count(w.outbox(t, "jobs")); left != "map[pending:150]" {
		t.Errorf("jobs: %s", left)
	}
}

// Catches a backlog that leaves one batch a second, or in another order than it came.
func TestABacklogDrainsQuicklyAndOldestFirst(t *testing.T) {
	t.Parallel()
	w := open(t)
	ids := w.create(t, 1000)
	var taken basket
	start := time.Now()
	run(t, w.jobs(&taken))
	eventually(t, "the backlog is drained", func() bool { return len(taken.all()) >= 1000 })
	if took := time.Since(start); took > 5*Look {
		t.Errorf("1000 jobs took %v", took)
	}
	if diff := cmp.Diff(ids, taken.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	eventually(t, "the outbox is empty", func() bool { return len(w.outbox(t, "jobs")) == 0 })
}

// Catches a run's later messages that wait a second each, although nothing but the one before stood in their way.
func TestMessagesOfOneRunFollowEachOtherQuickly(t *testing.T) {
	t.Parallel()
	w := open(t)
	worker := lifecycle.Actor{Voice: lifecycle.Worker, Name: "framerun-worker"}
	for _, id := range w.create(t, 5) {
		ref := lifecycle.Ref{Kind: lifecycle.Code2WF, ID: id}
		for _, cmd := range []lifecycle.Command{
			{Verb: lifecycle.Complete, Run: ref, By: worker, Attempt: 1, Result: lifecycle.Result{Key: new("code2wf/x")}},
			{Verb: lifecycle.Place, Run: ref, By: designer}, {Verb: lifecycle.Delete, Run: ref, By: designer},
		} {
			if _, err := w.Apply(t.Context(), cmd); err != nil {
				t.Fatal(err)
			}
		}
	}
	order := map[string][]int{}
	start := time.Now()
	run(t, w.events(sender[lifecycle.Announcement](func(_ context.Context, events []lifecycle.Announcement) []error {
		for _, e := range events {
			order[e.Event.Run.ID] = append(order[e.Event.Run.ID], e.Event.Seq)
		}
		return make([]error, len(events))
	})))
	eventually(t, "all events have left", func() bool { return len(w.outbox(t, "events")) == 0 })
	if took := time.Since(start); took > 2*Look {
		t.Errorf("four events of each run took %v", took)
	}
	for id, seqs := range order {
		if !slices.Equal(seqs, []int{1, 2, 3, 4}) {
			t.Errorf("run %s: %v", id, seqs)
		}
	}
}

// Catches a lane that does not hear its wake, or that nobody woke and that never looks.
func TestWakesAndLooks(t *testing.T) {
	t.Parallel()
	w := open(t)
	var taken basket
	lane := w.jobs(&taken)
	wake := make(chan struct{}, 1)
	lane.Wake = wake
	stop := run(t, lane)
	start := time.Now()
	for i := range 10 {
		w.create(t, 1)
		wake <- struct{}{}
		eventually(t, "the job has left", func() bool { return len(taken.all()) == i+1 })
	}
	if took := time.Since(start); took > 5*Look {
		t.Errorf("ten jobs with a hint each took %v", took)
	}
	stop()
	lane.Wake = nil
	run(t, lane)
	w.create(t, 1)
	eventually(t, "the job leaves without a hint", func() bool { return len(taken.all()) == 11 })
}

// Catches a round that is cut off when the service is told to stop: its messages would be sent twice, or leave a lease later.
func TestTheRoundInHandIsFinished(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.create(t, 2)
	sending, arrived := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	lane := w.jobs(sender[lifecycle.Job](func(ctx context.Context, jobs []lifecycle.Job) []error {
		close(sending)
		<-arrived
		if ctx.Err() != nil {
			t.Error("sending was cut off")
		}
		return []error{nil, errors.New("busy")}
	}))
	go func() { ended <- lane.Run(ctx) }()
	<-sending
	cancel()
	select {
	case <-ended:
		t.Fatal("the lane ended with messages in hand")
	case <-time.After(50 * time.Millisecond):
	}
	close(arrived)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	left := w.outbox(t, "jobs")
	if len(left) != 1 || left[0].LastError == nil || *left[0].LastError != "busy" {
		t.Errorf("left: %+v", left)
	}
}

// Catches a relay that was frozen beyond its lease and then settles what another one holds.
func TestAFrozenRelayDoesNoHarm(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.create(t, 3)
	fates := []error{nil, errors.New("late and busy"), fmt.Errorf("late: %w", lifecycle.ErrUndeliverable)}
	frozen, thaw, late := make(chan struct{}), make(chan struct{}), make(chan struct{})
	slow := w.jobs(sender[lifecycle.Job](func(context.Context, []lifecycle.Job) []error {
		close(frozen)
		<-thaw
		return fates
	}))
	go func() { slow.round(t.Context()); close(late) }()
	<-frozen
	w.endLeases(t)
	var taken basket
	other := w.jobs(sender[lifecycle.Job](func(_ context.Context, jobs []lifecycle.Job) []error {
		before := w.outbox(t, "jobs")
		close(thaw)
		<-late
		after := w.outbox(t, "jobs")
		if len(before) != 3 || len(after) != 2 { // what the frozen one has sent is sent: it may be forgotten
			t.Fatalf("before %v, after %v", before, after)
		}
		for i, e := range after {
			if e.Tries != 2 || e.State != "pending" || e.LastError != nil || e.Wait < 1 {
				t.Errorf("the late relay touched %+v, which was %+v", e, before[i+1])
			}
		}
		return taken.take(jobs)
	}))
	if n := other.round(t.Context()); n != 3 || len(taken.all()) != 3 {
		t.Errorf("the other relay carried %d of 3", n)
	}
	if left := w.outbox(t, "jobs"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// Catches two relays of one database that lose a job between them or both carry it.
func TestTwoRelaysShare(t *testing.T) {
	t.Parallel()
	w := open(t)
	ids := w.create(t, 500)
	second, err := store.Open(w.url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { second.Close() })
	var taken basket
	run(t, w.jobs(&taken))
	other := w.jobs(&taken)
	other.Claim, other.Store = second.ClaimJobs("code2wf"), second
	run(t, other)
	eventually(t, "the outbox is empty", func() bool { return len(w.outbox(t, "jobs")) == 0 })
	got := taken.all()
	slices.Sort(got)
	slices.Sort(ids)
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What cannot even be loaded is not sent, and its error decides what becomes of it. Catches an empty message that is sent, and an
// entry that blocks its run's later ones for ever.
func TestWhatCannotBeLoadedIsNotSent(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.create(t, 2)
	if _, err := w.sql.Exec(`DELETE FROM run_event WHERE run_id = (SELECT min(run_id) FROM outbox)`); err != nil {
		t.Fatal(err)
	}
	var sent int
	lane := w.events(sender[lifecycle.Announcement](func(_ context.Context, loads []lifecycle.Announcement) []error {
		sent += len(loads)
		return make([]error, len(loads))
	}))
	if arrived := lane.round(t.Context()); arrived != 1 || sent != 1 {
		t.Errorf("%d sent, %d arrived, want 1", sent, arrived)
	}
	if left := w.outbox(t, "events"); len(left) != 1 || left[0].State != "set_aside" || left[0].LastError == nil {
		t.Errorf("left: %+v", left)
	}
}
