package store

import (
	"time"

	"framerun.dev/pkg/lifecycle"
)

// Fresh is what a store writes into the outbox for a lane of its own process. An entry is born under the lease that a claim would give it and
// is handed over once its transaction has been committed, so that nobody has to look for it, lease it and read what it is about. Should
// the process die in between, or the lane be slow, the lease runs out and the entry is claimed like any other.
type Fresh[T any] struct {
	Parcels <-chan Parcel[T]
	Waiting <-chan struct{} // holds a token when something was written that has to be claimed
}

// FreshJobs hands new jobs of one kind of work over. Like all of its kind it is to be called before the store writes anything.
func (s *Store) FreshJobs(work string, lease time.Duration) Fresh[lifecycle.Job] {
	h := newHandover[lifecycle.Job](lease)
	s.fresh.jobs[work] = h
	return h.fresh()
}

// FreshEvents hands new public events over.
func (s *Store) FreshEvents(lease time.Duration) Fresh[lifecycle.Announcement] {
	s.fresh.events = newHandover[lifecycle.Announcement](lease)
	return s.fresh.events.fresh()
}

// FreshDecisions hands decisions over that are to be told to the result document.
func (s *Store) FreshDecisions(lease time.Duration) Fresh[lifecycle.Announcement] {
	s.fresh.decisions = newHandover[lifecycle.Announcement](lease)
	return s.fresh.decisions.fresh()
}

// FreshDesigns hands completed runs over that are to land in the design registry.
func (s *Store) FreshDesigns(lease time.Duration) Fresh[lifecycle.Landing] {
	s.fresh.designs = newHandover[lifecycle.Landing](lease)
	return s.fresh.designs.fresh()
}

// fresh are the lanes of this process, by what they carry. Nobody is handed what has no lane here.
type fresh struct {
	jobs              map[string]*handover[lifecycle.Job] // by kind of work
	events, decisions *handover[lifecycle.Announcement]
	designs           *handover[lifecycle.Landing]
}

// handover leads to one lane. The nil handover leads nowhere: what is written for it has to be claimed.
type handover[T any] struct {
	lease   time.Duration
	parcels chan Parcel[T]
	waiting chan struct{}
}

// onTheWay is how many entries may be on their way to a lane. One that has half of that before it does not keep up, and is handed
// nothing more: what it cannot carry soon, others may claim.
const onTheWay = 1024

func newHandover[T any](lease time.Duration) *handover[T] {
	return &handover[T]{lease, make(chan Parcel[T], onTheWay), make(chan struct{}, 1)}
}

func (h *handover[T]) fresh() Fresh[T] { return Fresh[T]{h.parcels, h.waiting} }

// term is the lease in milliseconds that an entry is to be born with; 0 if it is to be claimed.
func (h *handover[T]) term() int64 {
	if h == nil || len(h.parcels) >= onTheWay/2 {
		return 0
	}
	return h.lease.Milliseconds()
}

// hand passes an entry on that was born under a lease, not before began; nil stands for one that was not, and has to be claimed.
func (h *handover[T]) hand(began time.Time, entry *int64, load T) {
	switch {
	case h == nil:
	case entry == nil:
		select {
		case h.waiting <- struct{}{}:
		default: // one token says it all
		}
	default:
		select {
		case h.parcels <- Parcel[T]{ID: *entry, Tries: 1, Load: load, Until: began.Add(h.lease)}:
		default: // too many at once: the lease will run out
		}
	}
}

// born are the entries of one step that were born under a lease.
type born struct {
	Job    *int64 `db:"job"`
	Event  *int64 `db:"event"`
	Effect *int64 `db:"effect"`
}

// handOver passes on what a creation or an applied step has written, once it is committed.
func (s *Store) handOver(began time.Time, d lifecycle.Decision, b born) {
	if d.Job != lifecycle.NoJob {
		job := lifecycle.Job{Run: d.Next, Stage: d.Job, Attempt: d.Next.Attempt, Traceparent: d.Event.Traceparent}
		s.fresh.jobs[d.Next.Work()].hand(began, b.Job, job)
	}
	told := lifecycle.Announcement{Event: *d.Event, Tenant: d.Next.Tenant}
	s.fresh.events.hand(began, b.Event, told)
	switch s.effects.of(d.Next, *d.Event) {
	case documents:
		s.fresh.decisions.hand(began, b.Effect, told)
	case designs:
		s.fresh.designs.hand(began, b.Effect, lifecycle.Landing{Run: d.Next, At: d.Event.At, By: d.Event.By})
	}
}

// effectTerm is the lease of a step's effect.
func (s *Store) effectTerm(effect string) int64 {
	switch effect {
	case documents:
		return s.fresh.decisions.term()
	case designs:
		return s.fresh.designs.term()
	}
	return 0
}
