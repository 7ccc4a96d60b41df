package main

import (
	"context"
	"slices"
	"time"

	"framerun.dev/pkg/lifecycle"
)

// together is how many runs one query looks at.
const together = 500

// lookOut looks at all runs that are polled or waited for, twice in a look, without waiting to be told, until ctx ends. It always returns nil: while
// PostgreSQL is down it tries again, and readyz tells.
func (h *hot) lookOut(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(look / 2):
			h.lookAtAll(ctx)
		}
	}
	return nil
}

// follow looks at the runs that somebody waits for as soon as it is told that they changed, until ctx ends. It always returns nil.
func (h *hot) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-h.wake:
			h.lookAtWanted(ctx)
		}
	}
	return nil
}

// lookAtAll asks for the versions of all runs that are polled or waited for, and lets go of those that are not any more.
func (h *hot) lookAtAll(ctx context.Context) {
	for kind, entries := range h.sweep() {
		for batch := range slices.Chunk(entries, together) {
			h.compare(ctx, kind, batch)
		}
	}
}

// sweep drops what nobody needs any more, and gives the rest by kind.
func (h *hot) sweep() map[lifecycle.Kind][]*entry {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[lifecycle.Kind][]*entry{}
	for _, entries := range h.runs {
		for _, e := range slices.Clone(entries) {
			switch {
			case len(e.waiters) > 0 || e.polled && now.Sub(e.used) < idle:
				all[e.ref.Kind] = append(all[e.ref.Kind], e)
			case e.reading == nil && now.Sub(e.used) > idle && now.Sub(e.listed) > shelf:
				h.drop(e)
			}
		}
	}
	return all
}

// compare asks for the versions of a batch. What has another one by now is to be looked at.
func (h *hot) compare(ctx context.Context, kind lifecycle.Kind, batch []*entry) {
	began, hints := h.begin(batch)
	versions, err := h.store.Versions(ctx, kind, idsOf(batch))
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, e := range batch {
		if e.reading != nil || e.landed.After(began) { // somebody knows better, or soon will
			continue
		}
		if version, there := versions[e.ref.ID]; there && version.Equal(e.version) {
			e.unchanged(began, hints[i])
			continue
		}
		h.doubt(e)
	}
}

// lookAtWanted reads the runs that may have changed and that somebody waits for. What comes while it does so is looked at next, all of
// it together: a flood of hints makes larger looks, not more of them.
func (h *hot) lookAtWanted(ctx context.Context) {
	byKind := map[lifecycle.Kind][]*entry{}
	h.mu.Lock()
	for _, e := range h.wanted {
		e.queued = false
		byKind[e.ref.Kind] = append(byKind[e.ref.Kind], e)
	}
	h.wanted = nil
	h.mu.Unlock()
	for kind, entries := range byKind {
		for batch := range slices.Chunk(entries, together) {
			h.readAgain(ctx, kind, batch)
		}
	}
}

// readAgain reads a batch. An error is left to the next look.
func (h *hot) readAgain(ctx context.Context, kind lifecycle.Kind, batch []*entry) {
	began, hints := h.begin(batch)
	runs, err := h.store.Runs(ctx, kind, idsOf(batch))
	if err != nil {
		return
	}
	found := make(map[string]lifecycle.Run, len(runs))
	for _, run := range runs {
		found[run.ID] = run
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, e := range batch {
		if run, there := found[e.ref.ID]; there && run.Tenant == e.tenant {
			h.learn(e, run, began, hints[i])
		} else {
			h.gone(e)
		}
	}
}

// begin notes the time, and how many hints had come for each of the batch.
func (h *hot) begin(batch []*entry) (began time.Time, hints []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	hints = make([]int, len(batch))
	for i, e := range batch {
		hints[i] = e.hints
	}
	return time.Now(), hints
}

func idsOf(batch []*entry) []string {
	ids := make([]string, len(batch))
	for i, e := range batch {
		ids[i] = e.ref.ID
	}
	return ids
}

// hint says that the run may have changed. It never blocks.
func (h *hot) hint(ref lifecycle.Ref) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.runs[ref] {
		h.doubt(e)
	}
}

// doubt makes the next one who asks read the run again, and where somebody waits has it looked at; h.mu is held.
func (h *hot) doubt(e *entry) {
	e.hints++
	if e.queued || len(e.waiters) == 0 {
		return
	}
	e.queued, h.wanted = true, append(h.wanted, e)
	select {
	case h.wake <- struct{}{}:
	default: // the one token says it all
	}
}

// waiter is one request that waits for news of a run.
type waiter struct {
	news     chan struct{} // holds a token when there is some
	progress bool          // the worker's word is news too
	leave    func()
}

// wait registers a waiter, which must leave. Register first, look after: so no news is missed.
func (h *hot) wait(ref lifecycle.Ref, tenant lifecycle.Tenant, progress bool) *waiter {
	w := &waiter{news: make(chan struct{}, 1), progress: progress}
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.entry(ref, tenant)
	if e.waiters == nil {
		e.waiters = map[*waiter]struct{}{}
	}
	e.waiters[w] = struct{}{}
	w.leave = func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(e.waiters, w)
	}
	return w
}

// stir wakes those who wait for a run; hot.mu is held.
func (e *entry) stir(progress bool) {
	for w := range e.waiters {
		if progress && !w.progress {
			continue
		}
		select {
		case w.news <- struct{}{}:
		default:
		}
	}
}

// progressed wakes those to whom the worker's word is news.
func (h *hot) progressed(ref lifecycle.Ref) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.runs[ref] {
		e.stir(true)
	}
}
