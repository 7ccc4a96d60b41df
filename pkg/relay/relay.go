// Package relay carries the outbox to the world: claim under a lease, send, forget.
//
// The row comes first and the queue after (seed): what must be told is written in the row's own transaction, and a relay tells
// it later, as often as it takes. What the relay's own process has written is handed to it by the store, already under a lease. A message
// may arrive twice, when a relay dies between sending and forgetting; it never fails to arrive. What a destination will never take is set
// aside, so that it cannot hold up the others.
package relay

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

const (
	// Batch is how many entries are sent together at most.
	Batch = 250
	// Look is how long a lane sleeps at most when nobody wakes it: NATS may lose every hint.
	Look = time.Second
	// gather is the time between two rounds of a lane, unless a full batch shows that many wait. What comes alone leaves at once; what comes
	// in a stream leaves together, and what the lane saves is free for the requests whose runs it carries.
	gather = 10 * time.Millisecond
	// Lease is how long an entry that was claimed, or handed over, is nobody else's. After a crash it leaves this much later, so it is
	// short; sending must end well within it, so that only a relay that is frozen, or kept waiting by PostgreSQL, can be overtaken.
	Lease, sending = 3 * time.Second, 2 * time.Second
	// A failed entry waits longer each time, but never so long that a backlog outlives the fault by much.
	firstWait, longestWait = 250 * time.Millisecond, 5 * time.Second
	// What comes too early waits for somebody outside, perhaps for ever, and must not keep the lane busy with asking.
	earlyWait = 5 * time.Minute
)

// Sender delivers one lane's loads. It returns one error for each, nil for those that have arrived. An error that wraps
// lifecycle.ErrUndeliverable says that this load will never be taken; lifecycle.ErrOutdated, that it need not be sent any more;
// lifecycle.ErrTooEarly, that somebody else has to act first.
type Sender[T any] interface {
	Send(ctx context.Context, loads []T) []error
}

// Lane is one destination's share of the outbox. Lanes do not wait for each other: a queue that is down delays no event.
// Any number of processes may run the same lane on one database.
type Lane[T any] struct {
	Name   string
	Fresh  store.Fresh[T] // what this process has written; the zero Fresh if it writes nothing for this lane
	Most   int            // entries that are sent together, where the destination takes them one by one; 0 stands for Batch
	Claim  func(ctx context.Context, limit int, lease time.Duration) ([]store.Parcel[T], error)
	Sender Sender[T]
	Store  *store.Store
	Wake   <-chan struct{} // a hint that something waits to be claimed; may be nil
	Log    *slog.Logger
	Count  func(result string, n int) // result is sent, retried, skipped or set_aside; may be nil

	SetAside func() // called after entries were set aside, so that somebody ends what waits for them; may be nil
}

// Run carries until ctx ends, and finishes what it was handed by then. It always returns nil: whatever goes wrong is tried again.
func (l Lane[T]) Run(ctx context.Context) error {
	l.Most = cmp.Or(l.Most, Batch)
	var parcels []store.Parcel[T] // what woke the lane
	var look looking
	for ctx.Err() == nil {
		began := time.Now()
		arrived := l.carry(ctx, inTime(l.handed(parcels)))
		parcels = nil
		if !began.Before(look.next) {
			claimed := l.claim(ctx)
			found := l.carry(ctx, inTime(claimed))
			look.done(began, len(claimed), l.Most, found)
			arrived += found
		}
		if arrived < l.Most { // otherwise more wait
			l.pause(ctx, gather-time.Since(began))
			parcels = l.rest(ctx, &look)
		}
	}
	for len(parcels)+len(l.Fresh.Parcels) > 0 {
		l.carry(ctx, inTime(l.handed(parcels)))
		parcels = nil
	}
	return nil
}

func (l Lane[T]) pause(ctx context.Context, length time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(length):
	}
}

// rest waits for something to do, until the next look: for a parcel, or for the news that something is to be claimed.
func (l Lane[T]) rest(ctx context.Context, look *looking) []store.Parcel[T] {
	select {
	case p := <-l.Fresh.Parcels:
		return []store.Parcel[T]{p}
	case <-l.Fresh.Waiting:
		look.woken()
	case <-l.Wake:
		look.woken()
	case <-time.After(time.Until(look.next)):
	case <-ctx.Done():
	}
	return nil
}

// handed adds to parcels what was handed over meanwhile, up to a batch.
func (l Lane[T]) handed(parcels []store.Parcel[T]) []store.Parcel[T] {
	for len(parcels) < l.Most && len(l.Fresh.Parcels) > 0 { // nobody else takes from there
		parcels = append(parcels, <-l.Fresh.Parcels)
	}
	return parcels
}

// inTime leaves alone what has waited for so long that sending it might outlast its lease: it will be claimed.
func inTime[T any](parcels []store.Parcel[T]) []store.Parcel[T] {
	return slices.DeleteFunc(parcels, func(p store.Parcel[T]) bool { return time.Until(p.Until) < sending })
}

func (l Lane[T]) claim(ctx context.Context) []store.Parcel[T] {
	parcels, err := l.Claim(ctx, l.Most, Lease)
	if err != nil && ctx.Err() == nil {
		l.Log.Warn("outbox not readable, trying again", "lane", l.Name, "error", err)
	}
	return parcels
}

// carry sends and settles parcels, and counts what arrived. What it was given is settled even when ctx ends meanwhile.
func (l Lane[T]) carry(ctx context.Context, parcels []store.Parcel[T]) (arrived int) {
	if len(parcels) == 0 {
		return 0
	}
	ctx = context.WithoutCancel(ctx)
	return l.settle(ctx, parcels, l.send(ctx, parcels))
}

// send tries to deliver each parcel and returns one error for each. What has no load is not sent, and its error stands.
func (l Lane[T]) send(ctx context.Context, parcels []store.Parcel[T]) []error {
	ctx, cancel := context.WithTimeout(ctx, sending)
	defer cancel()
	errs := make([]error, len(parcels))
	var loads []T
	var places []int
	for i, p := range parcels {
		if errs[i] = p.Broken; p.Broken == nil {
			loads, places = append(loads, p.Load), append(places, i)
		}
	}
	if len(loads) > 0 {
		for i, err := range l.Sender.Send(ctx, loads) {
			errs[places[i]] = err
		}
	}
	return errs
}

// settle writes down what became of each parcel. An entry that cannot be settled stays leased and is sent again later.
func (l Lane[T]) settle(ctx context.Context, parcels []store.Parcel[T], errs []error) int {
	ctx, cancel := context.WithTimeout(ctx, Lease)
	defer cancel()
	var arrived []int64
	var again []store.Failure
	var first error // one line for a destination that is down, not one for each entry
	aside := false
	for i, p := range parcels {
		switch err := errs[i]; {
		case err == nil:
			arrived = append(arrived, p.ID)
		case errors.Is(err, lifecycle.ErrUndeliverable):
			l.Log.Error("message set aside: it can never be delivered", "lane", l.Name, "outbox_id", p.ID, "error", err)
			l.report(l.Store.SetAside(ctx, p.ID, p.Tries, err.Error()))
			l.count("set_aside", 1)
			aside = true
		case errors.Is(err, lifecycle.ErrOutdated):
			l.Log.Warn("message let go: it is outdated", "lane", l.Name, "outbox_id", p.ID, "error", err)
			l.report(l.Store.Skip(ctx, p.ID, p.Tries, err.Error()))
			l.count("skipped", 1)
		default:
			again = append(again, store.Failure{ID: p.ID, Tries: p.Tries, Wait: wait(p.Tries, err), Cause: err.Error()})
			first = cmp.Or(first, err)
		}
	}
	if len(again) > 0 {
		l.Log.Warn("messages not taken, trying again", "lane", l.Name, "count", len(again), "first_error", first)
		l.report(l.Store.Retry(ctx, again...))
		l.count("retried", len(again))
	}
	if aside && l.SetAside != nil {
		l.SetAside()
	}
	if len(arrived) > 0 {
		l.report(l.Store.Sent(ctx, arrived))
		l.count("sent", len(arrived))
	}
	return len(arrived)
}

// wait is how long the entry rests after its tries-th failure, which was err.
func wait(tries int, err error) time.Duration {
	longest := longestWait
	if errors.Is(err, lifecycle.ErrTooEarly) {
		longest = earlyWait
	}
	return min(firstWait<<min(tries-1, 16), longest)
}

func (l Lane[T]) report(err error) {
	if err != nil {
		l.Log.Warn("outbox not writable: the message may be sent twice", "lane", l.Name, "error", err)
	}
}

func (l Lane[T]) count(result string, n int) {
	if l.Count != nil {
		l.Count(result, n)
	}
}
