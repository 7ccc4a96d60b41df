package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"github.com/google/go-cmp/cmp"
)

// handing is a lane of jobs that is handed what w writes from now on, and never finds anything to claim.
func (w *world) handing(s Sender[lifecycle.Job]) Lane[lifecycle.Job] {
	lane := w.jobs(s)
	lane.Fresh = w.FreshJobs("code2wf", Lease)
	lane.Claim = func(context.Context, int, time.Duration) ([]store.Parcel[lifecycle.Job], error) { return nil, nil }
	return lane
}

// parcel is a job of no run, under a lease that ends so much later.
func parcel(id int64, left time.Duration) store.Parcel[lifecycle.Job] {
	load := lifecycle.Job{Run: lifecycle.Run{Ref: lifecycle.Ref{Kind: lifecycle.Code2WF, ID: fmt.Sprint(id)}}}
	return store.Parcel[lifecycle.Job]{ID: id, Tries: 1, Load: load, Until: time.Now().Add(left)}
}

// Catches a lane that leaves what it was handed until it looks again, sends it twice, or does not forget it.
func TestWhatIsHandedOverLeavesAtOnce(t *testing.T) {
	t.Parallel()
	w := open(t)
	var taken basket
	run(t, w.handing(&taken))
	start := time.Now()
	var ids []string
	for i := range 10 {
		ids = append(ids, w.create(t, 1)...)
		eventually(t, "the job has left", func() bool { return len(taken.all()) > i })
	}
	if took := time.Since(start); took > 5*Look {
		t.Errorf("ten jobs took %v", took)
	}
	eventually(t, "the outbox is empty", func() bool { return len(w.outbox(t, "jobs")) == 0 })
	taken.must(t, ids)
}

// Catches a lane that is not told by its own process what it has to claim, and sleeps on.
func TestALaneHearsItsOwnProcess(t *testing.T) {
	t.Parallel()
	w := open(t)
	var taken basket
	lane := w.jobs(&taken)
	waiting := make(chan struct{}, 1)
	lane.Fresh.Waiting = waiting
	var vain atomic.Int64 // looks that found nothing
	claim := lane.Claim
	lane.Claim = func(ctx context.Context, limit int, lease time.Duration) ([]store.Parcel[lifecycle.Job], error) {
		parcels, err := claim(ctx, limit, lease)
		if len(parcels) == 0 {
			vain.Add(1)
		}
		return parcels, err
	}
	run(t, lane)
	var took time.Duration
	for i := range 6 {
		before := vain.Load()
		eventually(t, "the lane rests", func() bool { return vain.Load() >= before+min(int64(i), 2) }) // it looks once more for an older entry's sake
		start := time.Now()
		w.create(t, 1)
		select {
		case waiting <- struct{}{}:
		default: // the last token still lies there
		}
		eventually(t, "the job has left", func() bool { return len(taken.all()) == i+1 })
		took += time.Since(start)
	}
	if took > 3*Look {
		t.Errorf("six jobs took %v", took)
	}
}

// Catches a parcel that is sent although its lease may end before sending does, so that another relay is given it meanwhile; and one that
// is not even claimed when it has.
func TestAnOldParcelIsClaimedInstead(t *testing.T) {
	t.Parallel()
	w := open(t)
	var taken basket
	lane := w.jobs(&taken)
	lane.Fresh = w.FreshJobs("code2wf", sending-time.Millisecond)
	claim := lane.Claim
	lane.Claim = func(ctx context.Context, limit int, lease time.Duration) ([]store.Parcel[lifecycle.Job], error) {
		parcels, err := claim(ctx, limit, lease)
		for _, p := range parcels {
			if p.Tries != 2 {
				t.Errorf("claimed for the time number %d, want 2", p.Tries)
			}
		}
		if sent := taken.all(); len(sent) > 0 && len(parcels) > 0 {
			t.Errorf("claimed when it had been sent: %v", sent)
		}
		return parcels, err
	}
	run(t, lane)
	ids := w.create(t, 3)
	eventually(t, "the jobs have left", func() bool { return len(taken.all()) >= 3 })
	taken.must(t, ids)
}

// Catches a parcel that grows old while PostgreSQL keeps the lane waiting with a claim, be it handed or claimed, and is sent all the same.
func TestAParcelThatGrewOldUnderAClaimIsNotSent(t *testing.T) {
	t.Parallel()
	w := open(t)
	var taken basket
	lane := w.jobs(&taken)
	parcels := make(chan store.Parcel[lifecycle.Job], 2)
	lane.Fresh.Parcels = parcels
	claims := 0
	lane.Claim = func(context.Context, int, time.Duration) ([]store.Parcel[lifecycle.Job], error) {
		if claims++; claims > 1 {
			return nil, nil
		}
		const old, young = sending + 100*time.Millisecond, time.Hour
		parcels <- parcel(-1, old)
		parcels <- parcel(-2, young)
		claimed := []store.Parcel[lifecycle.Job]{parcel(-3, old), parcel(-4, young)}
		<-time.After(200 * time.Millisecond)
		return claimed, nil
	}
	run(t, lane)
	eventually(t, "what is young has left", func() bool { return slices.Contains(taken.all(), "-2") })
	if diff := cmp.Diff([]string{"-4", "-2"}, taken.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Catches a handed parcel that is lost or kept under its lease when it is not taken, neighbours that suffer with it, and a cause that
// PostgreSQL cannot keep.
func TestWhatWasHandedOverIsGivenBack(t *testing.T) {
	t.Parallel()
	w := open(t)
	lane := w.handing(sender[lifecycle.Job](func(_ context.Context, jobs []lifecycle.Job) []error {
		errs := make([]error, len(jobs))
		for i, j := range jobs {
			switch j.Run.FigmaFileKey {
			case "busy":
				errs[i] = errors.New("bu\x00sy \xff")
			case "never":
				errs[i] = fmt.Errorf("odd: %w", lifecycle.ErrUndeliverable)
			}
		}
		return errs
	}))
	parcels := make(chan store.Parcel[lifecycle.Job], 3)
	real := lane.Fresh.Parcels
	lane.Fresh.Parcels = parcels
	w.create(t, 3)
	for i := range 3 { // all in one batch
		p := <-real
		p.Load.Run.FigmaFileKey = []string{"busy", "fine", "never"}[i]
		parcels <- p
	}
	run(t, lane)
	eventually(t, "all three are settled", func() bool { return count(w.outbox(t, "jobs")) == "map[pending:1 set_aside:1]" })
	eventually(t, "one is given back", func() bool { return w.outbox(t, "jobs")[0].LastError != nil })
	busy := w.outbox(t, "jobs")[0]
	if *busy.LastError != "busy \uFFFD" || busy.Tries != 1 || busy.Wait > firstWait.Seconds() {
		t.Errorf("given back: %+v, because of %q", busy, *busy.LastError)
	}
	if claimed, err := w.ClaimJobs("code2wf")(t.Context(), 10, Lease); err != nil || len(claimed) > 0 && claimed[0].Tries != 2 {
		t.Errorf("claimed: %+v, %v", claimed, err)
	}
}

// Catches what a relay was handed before it was told to stop, and leaves to others a lease later; more than one batch of it, and what
// stands behind others that have grown old.
func TestARelayThatStopsSendsWhatItWasHanded(t *testing.T) {
	t.Parallel()
	w := open(t)
	var taken basket
	busy, arrived := make(chan struct{}), make(chan struct{})
	var once sync.Once
	lane := w.handing(sender[lifecycle.Job](func(_ context.Context, jobs []lifecycle.Job) []error {
		once.Do(func() { close(busy); <-arrived })
		return taken.take(jobs)
	}))
	fresh := lane.Fresh.Parcels
	parcels := make(chan store.Parcel[lifecycle.Job], 4*Batch)
	lane.Fresh.Parcels = parcels
	parcels <- parcel(-1, time.Hour)
	stop := run(t, lane)
	<-busy
	for i := range int64(Batch) {
		parcels <- parcel(-10-i, sending-time.Millisecond)
	}
	ids := append([]string{"-1"}, w.create(t, Batch+50)...)
	for range Batch + 50 {
		p := <-fresh
		p.Until = time.Now().Add(time.Hour) // whatever the machine does meanwhile
		parcels <- p
	}
	go func() {
		<-time.After(20 * time.Millisecond)
		close(arrived)
	}()
	stop()
	taken.must(t, ids)
	if left := w.outbox(t, "jobs"); len(left) != 0 {
		t.Errorf("%d are left", len(left))
	}
}

// Catches a lane that is so busy with what it is handed that it never looks for what others have left.
func TestWhatIsHandedOverDoesNotStarveTheOthers(t *testing.T) {
	t.Parallel()
	w := open(t)
	ids := w.create(t, 2*Batch) // nobody is handed these
	var taken basket
	lane := w.jobs(nil)
	lane.Sender = sender[lifecycle.Job](func(_ context.Context, jobs []lifecycle.Job) []error {
		taken.take(slices.DeleteFunc(slices.Clone(jobs), func(j lifecycle.Job) bool { return j.Run.ID[0] == '-' }))
		return make([]error, len(jobs))
	})
	parcels := make(chan store.Parcel[lifecycle.Job], Batch)
	lane.Fresh.Parcels = parcels
	go func() {
		for id := int64(-1); ; id-- {
			select {
			case parcels <- parcel(id, Lease):
			case <-t.Context().Done():
				return
			}
		}
	}()
	run(t, lane)
	eventually(t, "what others have left is carried", func() bool { return len(taken.all()) == len(ids) })
}

// Two processes write the steps of a run in turn, and each carries what it has written. Catches a message that overtakes an older one of
// its run which lies with the other process, and one that is lost between the two.
func TestTwoProcessesKeepARunsOrder(t *testing.T) {
	t.Parallel()
	w := open(t)
	var mu sync.Mutex
	order := map[string][]int{}
	stores := []*store.Store{w.Store, nil}
	var err error
	if stores[1], err = store.Open(w.url, store.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stores[1].Close() })
	for _, s := range stores {
		lane := w.events(sender[lifecycle.Announcement](func(_ context.Context, events []lifecycle.Announcement) []error {
			<-time.After(rand.N(3 * time.Millisecond))
			mu.Lock()
			defer mu.Unlock()
			for _, e := range events {
				if seqs := order[e.Event.Run.ID]; !slices.Contains(seqs, e.Event.Seq) { // a second time is no harm
					order[e.Event.Run.ID] = append(seqs, e.Event.Seq)
				}
			}
			return make([]error, len(events))
		}))
		lane.Fresh, lane.Claim, lane.Store = s.FreshEvents(Lease), s.ClaimEvents, s
		run(t, lane)
	}
	var writers sync.WaitGroup
	for i := range 16 {
		writers.Go(func() {
			for n := range 8 {
				w.inTurn(t, stores, i+n)
			}
		})
	}
	writers.Wait()
	eventually(t, "all events have left", func() bool { return len(w.outbox(t, "events")) == 0 })
	for id, seqs := range order {
		if !slices.Equal(seqs, []int{1, 2, 3, 4}) {
			t.Errorf("run %s: %v", id, seqs)
		}
	}
	if len(order) != 16*8 {
		t.Errorf("%d runs were told of, want %d", len(order), 16*8)
	}
}

// inTurn leads a run through four steps, each in another process than the one before.
func (w *world) inTurn(t *testing.T, stores []*store.Store, first int) {
	c := creation()
	worker := lifecycle.Actor{Voice: lifecycle.Worker, Name: "framerun-worker"}
	if _, err := stores[first%2].Create(t.Context(), c); err != nil {
		t.Error(err)
	}
	for i, cmd := range []lifecycle.Command{
		{Verb: lifecycle.Complete, Run: c.Run.Ref, By: worker, Attempt: 1, Result: lifecycle.Result{Key: new("code2wf/x")}},
		{Verb: lifecycle.Place, Run: c.Run.Ref, By: designer}, {Verb: lifecycle.Delete, Run: c.Run.Ref, By: designer},
	} {
		<-time.After(rand.N(4*gather) / time.Duration(1+first%4)) // some steps come when the one before has left
		if _, err := stores[(first+1+i)%2].Apply(t.Context(), cmd); err != nil {
			t.Error(err)
		}
	}
}
