// Package relay carries the outbox to the world: claim under a lease, send, forget.
//
// The row comes first and the queue after (seed): what must be told is written in the row's own transaction, and a relay tells
// it later, as often as it takes. A message may arrive twice, when a relay dies between sending and forgetting; it never
// fails to arrive. What a destination will never take is set aside, so that it cannot hold up the others.
package relay

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

const (
	// Batch is how many entries one round carries at most.
	Batch = 250
	// Look is how long a lane sleeps at most when nobody wakes it: NATS may lose every hint.
	Look = time.Second
	// gather is the time between two rounds of a lane, unless a full batch shows that many wait. What comes alone leaves at once; what comes
	// in a stream leaves together, and what the lane saves is free for the requests whose runs it carries.
	gather = 50 * time.Millisecond
	// lease is how long a claimed entry is nobody else's. After a crash its entries leave this much later, so it is short;
	// sending must end well within it, so that only a relay that is frozen, or kept waiting by PostgreSQL, can be overtaken.
	lease, sending = 3 * time.Second, 2 * time.Second
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
	Claim  func(ctx context.Context, limit int, lease time.Duration) ([]store.Parcel[T], error)
	Sender Sender[T]
	Store  *store.Store
	Wake   <-chan struct{} // a hint that something waits; may be nil
	Log    *slog.Logger
	Count  func(result string, n int) // result is sent, retried, skipped or set_aside; may be nil

	SetAside func() // called after entries were set aside, so that somebody ends what waits for them; may be nil
}

// Run carries until ctx ends, and finishes the round it is in. It always returns nil: whatever goes wrong is tried again.
func (l Lane[T]) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		began := time.Now()
		switch l.round(ctx) {
		case Batch: // more wait
			continue
		case 0:
			l.rest(ctx, l.Wake, Look)
		}
		l.rest(ctx, nil, gather-time.Since(began)) // and look again, for more may wait: each run gives out one message at a time
	}
	return nil
}

// rest waits until it is woken, for no longer than most.
func (l Lane[T]) rest(ctx context.Context, wake <-chan struct{}, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-wake:
	case <-time.After(most):
	}
}

// round claims, sends and settles one batch, and counts what arrived. What is claimed is settled even when ctx ends meanwhile.
func (l Lane[T]) round(ctx context.Context) (arrived int) {
	parcels, err := l.Claim(ctx, Batch, lease)
	if err != nil {
		if ctx.Err() == nil {
			l.Log.Warn("outbox not readable, trying again", "lane", l.Name, "error", err)
		}
		return 0
	}
	if len(parcels) == 0 {
		return 0
	}
	ctx = context.WithoutCancel(ctx)
	errs := l.send(ctx, parcels)
	return l.settle(ctx, parcels, errs)
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
	ctx, cancel := context.WithTimeout(ctx, lease)
	defer cancel()
	var arrived []int64
	var first error // one line for a destination that is down, not one for each entry
	retried, aside := 0, false
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
			l.report(l.Store.Retry(ctx, p.ID, p.Tries, wait(p.Tries, err), err.Error()))
			retried++
			first = cmp.Or(first, err)
		}
	}
	if retried > 0 {
		l.Log.Warn("messages not taken, trying again", "lane", l.Name, "count", retried, "first_error", first)
		l.count("retried", retried)
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
