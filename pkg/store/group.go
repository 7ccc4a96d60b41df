package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"framerun.dev/pkg/lifecycle"
)

const (
	batchMost   = 128  // commands in one batch
	waitingMost = 4096 // commands that may wait; more are shed before they drown the rest
	singlesMost = 4    // batches of one that may be in flight at the same time
)

// group lets many callers share one commit. A caller that comes while nothing is in flight is the leader of a batch of one: it
// stores its command itself. Callers that come meanwhile wait, and as soon as there is room again, the first of them leads and
// takes all the others along in its batch. So a batch is as large as the crowd, nobody ever waits for a timer, and nobody works
// for others longer than one batch takes. A few batches of one may be in flight beside each other, for that is quicker while
// callers are few; a larger batch flies alone.
//
// A larger batch is carried on behalf of all its members: no caller's deadline or disconnect ends it. A batch of one ends with its
// caller.
type group[C, R any] struct {
	carry    func(ctx context.Context, batch []C) []answer[R] // stores a batch and answers each command
	key      func(C) string                                   // no batch holds two commands of one key
	patience time.Duration                                    // for one batch

	mu      sync.Mutex
	waiting []*member[C, R]
	flights int // batches in flight
	crowds  int // those of them that hold more than one command
}

type answer[R any] struct {
	value R
	err   error
}

// member is one caller in the group. turn holds true when it shall lead, false when it has been answered.
type member[C, R any] struct {
	command C
	leads   bool
	turn    chan bool
	answer  answer[R]
}

// do stores one command, alone or with others. Beside what carry answers it may be lifecycle.ErrUnavailable: too many wait, or ctx
// ended before the command's turn came, and nothing was stored; and lifecycle.ErrOutcomeUnknown when ctx ended while it was in
// flight.
func (g *group[C, R]) do(ctx context.Context, command C) (R, error) {
	m := &member[C, R]{command: command, turn: make(chan bool, 1)}
	var none R
	if err := ctx.Err(); err != nil { // the caller has gone already
		return none, failed(ctx, "wait for a turn", err)
	}
	if !g.join(m) {
		return none, fmt.Errorf("store: %d commands wait already: %w", waitingMost, lifecycle.ErrUnavailable)
	}
	select {
	case lead := <-m.turn:
		if lead {
			g.lead(ctx, m)
		}
		return m.answer.value, m.answer.err
	case <-ctx.Done():
		if g.withdraw(m) {
			return none, failed(ctx, "wait for a turn", ctx.Err())
		}
		return none, unknown("wait for an answer", ctx.Err())
	}
}

func (g *group[C, R]) join(m *member[C, R]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) >= waitingMost {
		return false
	}
	g.waiting = append(g.waiting, m)
	g.next()
	return true
}

// withdraw takes back a command whose turn has not come. A caller that was to lead lets the next one do it.
func (g *group[C, R]) withdraw(m *member[C, R]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, m)
	if i < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	if m.leads {
		g.flights--
		g.next()
	}
	return true
}

// next names a leader if there is room for a batch. g.mu is held.
func (g *group[C, R]) next() {
	if g.flights > 0 && (g.crowds > 0 || g.flights >= singlesMost) {
		return
	}
	for _, m := range g.waiting {
		if !m.leads {
			m.leads = true
			g.flights++
			m.turn <- true
			return
		}
	}
}

// lead carries the leader's batch and answers everyone in it. The next leader is let off first.
func (g *group[C, R]) lead(ctx context.Context, leader *member[C, R]) {
	batch := g.take(leader)
	commands := make([]C, len(batch))
	for i, m := range batch {
		commands[i] = m.command
		m.answer.err = unknown("carry a batch", context.Canceled) // what stands if carry panics
	}
	defer func() {
		g.land(len(batch))
		for _, m := range batch {
			if m != leader {
				m.turn <- false
			}
		}
	}()
	if len(batch) > 1 {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, g.patience)
	defer cancel()
	for i, a := range g.carry(ctx, commands) {
		batch[i].answer = a
	}
}

// take makes the leader's batch: the leader, and whoever waits without leading a batch itself.
func (g *group[C, R]) take(leader *member[C, R]) []*member[C, R] {
	g.mu.Lock()
	defer g.mu.Unlock()
	batch, keys := []*member[C, R]{leader}, map[string]bool{g.key(leader.command): true}
	stay := g.waiting[:0]
	for _, m := range g.waiting {
		switch key := g.key(m.command); {
		case m == leader:
		case m.leads || keys[key] || len(batch) == batchMost:
			stay = append(stay, m)
		default:
			batch, keys[key] = append(batch, m), true
		}
	}
	clear(g.waiting[len(stay):])
	g.waiting = stay
	if len(batch) > 1 {
		g.crowds++
	}
	return batch
}

// land makes room for the next batch.
func (g *group[C, R]) land(size int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flights--
	if size > 1 {
		g.crowds--
	}
	g.next()
}
