package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

const (
	look   = time.Second     // for how long silence is taken for "nothing has changed": NATS may lose every hint
	idle   = 6 * time.Second // what nobody has asked for in so long is not looked at any more; pollers come back within five seconds
	shelf  = time.Minute     // what has stood in a list is kept for so long, for the next list
	memory = 64 << 20        // bytes of runs that are kept, about
)

// hot holds the runs that people ask for or wait for, as PostgreSQL showed them last, so that a poll costs it nothing.
//
// A run is shown from here while it is known to be unchanged: PostgreSQL was asked less than a look ago, and no hint has come
// since. Hints are never believed for what they say; they make hot ask again. However many people ask for a run, it is read
// by one of them at a time, on behalf of all, and one query looks at up to 500 of them (look.go). Nobody is shown what was read
// before the last hint about a run that was hot when it came, nor anything older than the version that they have seen already.
type hot struct {
	store *store.Store

	mu     sync.Mutex
	runs   map[lifecycle.Ref][]*entry // an entry for each tenant that asks: nearly always there is one
	size   int                        // bytes of all views, about
	wanted []*entry                   // they may have changed, and somebody waits for them
	wake   chan struct{}              // holds a token while something is wanted
}

func newHot(s *store.Store) *hot {
	return &hot{store: s, runs: map[lifecycle.Ref][]*entry{}, wake: make(chan struct{}, 1)}
}

// entry is what is known of one run, as one tenant may see it. All of it belongs to hot.mu.
type entry struct {
	ref    lifecycle.Ref
	tenant lifecycle.Tenant

	view    *view     // nil: not known yet, not there, or let go for lack of room
	version time.Time // of the run as it was read last
	landed  time.Time // when that read was over
	checked time.Time // when PostgreSQL was last asked whether it is still so
	hints   int       // how many have come
	heeded  int       // how many of them had come when PostgreSQL was last asked

	used    time.Time // when somebody last asked
	polled  bool      // somebody has asked more than once
	listed  time.Time // when it last stood in a list
	reading *reading
	waiters map[*waiter]struct{}
	queued  bool // in wanted
	dropped bool // not in runs any more: whoever still holds it leaves nothing in it
}

// reading is one read of a run, shared by all who need it.
type reading struct {
	began time.Time
	hints int // that had come by then
	done  chan struct{}
	view  *view
	err   error
}

// show gives the run as it is, never older than seen, the newest version that its client has shown. Errors: those of store.Run, and
// the context's own.
func (h *hot) show(ctx context.Context, ref lifecycle.Ref, tenant lifecycle.Tenant, seen time.Time) (*view, error) {
	for came := time.Now(); ; {
		known, r, overtaken := h.recall(ref, tenant, seen)
		if known != nil {
			return known, nil
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch begunSince := !r.began.Before(came); {
		case begunSince: // nobody could know better
			return r.view, r.err
		case overtaken: // by a hint that had come before the request
		case r.err != nil || !r.view.run.UpdatedAt.Before(seen):
			return r.view, r.err
		}
	}
}

// recall gives the view that can be shown at once, or else a reading to wait for and whether a hint has come since it began.
func (h *hot) recall(ref lifecycle.Ref, tenant lifecycle.Tenant, seen time.Time) (*view, *reading, bool) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.entry(ref, tenant)
	e.used, e.polled = now, e.polled || e.view != nil
	unchanged := e.view != nil && e.hints == e.heeded && now.Sub(e.checked) < look
	if unchanged && !e.version.Before(seen) {
		return e.view, nil, false
	}
	if e.reading == nil {
		e.reading = &reading{began: now, hints: e.hints, done: make(chan struct{})}
		go h.read(e, e.reading)
	}
	return nil, e.reading, e.reading.hints != e.hints
}

// read carries out a reading. It belongs to nobody's request: whoever came first may leave before the others.
func (h *hot) read(e *entry, r *reading) {
	run, err := h.store.Run(context.Background(), e.ref, e.tenant)
	h.mu.Lock()
	defer h.mu.Unlock()
	e.reading, r.err = nil, err
	switch {
	case err == nil:
		r.view = h.learn(e, run, r.began, r.hints)
	case errors.Is(err, lifecycle.ErrNotFound):
		h.gone(e)
	}
	close(r.done)
}

// entry finds or makes the entry of a run; h.mu is held.
func (h *hot) entry(ref lifecycle.Ref, tenant lifecycle.Tenant) *entry {
	for _, e := range h.runs[ref] {
		if e.tenant == tenant {
			return e
		}
	}
	e := &entry{ref: ref, tenant: tenant}
	h.runs[ref] = append(h.runs[ref], e)
	return e
}

// learn takes in what a read that began at some time, after some hints, has brought, and gives what is known now. Of two reads at the
// same time the newer version counts; a read after the other one counts whatever it brings, for a database may be put back. h.mu is held.
func (h *hot) learn(e *entry, run lifecycle.Run, began time.Time, hints int) *view {
	if e.dropped {
		return newView(run)
	}
	overlaps := !began.After(e.landed)
	switch older := run.UpdatedAt.Before(e.version) || e.version.IsZero(); {
	case overlaps && older && e.view != nil:
		return e.view
	case overlaps && older: // what was newer has been let go, or the run is not there any more
		return newView(run)
	}
	changed := !run.UpdatedAt.Equal(e.version)
	if changed || e.view == nil {
		h.keep(e, newView(run))
	}
	v := e.view
	e.version, e.landed = run.UpdatedAt, time.Now()
	e.unchanged(began, hints)
	if changed {
		e.stir(false)
	}
	h.makeRoom()
	return v
}

// unchanged notes that PostgreSQL, asked at some time after some hints, said what is known already.
func (e *entry) unchanged(asked time.Time, hints int) {
	if asked.After(e.checked) {
		e.checked = asked
	}
	e.heeded = max(e.heeded, hints)
}

// gone forgets a run that is not there, or not for this tenant; h.mu is held.
func (h *hot) gone(e *entry) {
	h.keep(e, nil)
	e.version, e.landed = time.Time{}, time.Now()
	e.stir(false)
	if len(e.waiters) == 0 {
		h.drop(e)
	}
}

// keep puts v in the place of the entry's view; h.mu is held.
func (h *hot) keep(e *entry, v *view) {
	h.size += v.bytes() - e.view.bytes()
	e.view = v
}

// drop lets go of an entry that nobody waits for; h.mu is held.
func (h *hot) drop(e *entry) {
	h.keep(e, nil)
	e.dropped = true
	others := slices.DeleteFunc(h.runs[e.ref], func(other *entry) bool { return other == e })
	if h.runs[e.ref] = others; len(others) == 0 {
		delete(h.runs, e.ref)
	}
}

// makeRoom lets go of any views while there are too many bytes of them: they can be read again. h.mu is held.
func (h *hot) makeRoom() {
	for _, entries := range h.runs {
		if h.size <= memory {
			return
		}
		for _, e := range slices.Clone(entries) {
			if h.keep(e, nil); len(e.waiters) == 0 && e.reading == nil {
				h.drop(e)
			}
		}
	}
}
