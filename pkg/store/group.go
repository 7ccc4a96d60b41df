package store

import (
	"context"
	"errors"
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
	enough      = 32   // so many need not wait until a larger batch has landed: the one is decided and written while the other is committed
)

// group lets many callers share one commit, or one query where they read. A caller that comes while there is room leads a batch of one: it
// stores its command itself. Callers that come when there is none wait, and as soon as there is room again, the first of them is called to
// lead and takes all the others along in its batch. So a batch is as large as the crowd, nobody ever waits for a timer, and nobody works
// for others longer than one batch takes. There is room for a few batches of one beside each other, which is quicker while callers are few;
// beside a larger one only when those who wait are many: for a second one, or for a few of one if the others cannot come along. Commands of
// one key go one after the other, in the order of their coming, for they would only wait for each other's row.
//
// A larger batch is carried on behalf of all its members: no caller's deadline or disconnect ends it. A batch of one ends with its
// caller. Either ends when its leader has been here for as long as patience lasts, and so does waiting.
type group[C, R any] struct {
	carry    func(ctx context.Context, batch []C) []answer[R] // stores a batch and answers each command
	key      func(C) string                                   // what commands must not be in flight together for; nil: nothing
	patience time.Duration                                    // for one call
	alone    int                                              // above 0: nobody takes others along, and so many may be in flight

	mu      sync.Mutex
	waiting []*member[C, R] // in the order of their coming
	called  *member[C, R]   // who of them has been called to lead and has not set off yet
	flights int             // batches in flight
	crowds  int             // those of them that hold more than one command
	keys    map[string]bool // of the commands in flight
}

type answer[R any] struct {
	value R
	err   error
}

// member is one caller in the group. turn holds true when it shall lead, false when it has been answered.
type member[C, R any] struct {
	command C
	until   time.Time // its patience ends
	turn    chan bool
	answer  answer[R]
}

// do stores one command, alone or with others. Beside what carry answers it may be lifecycle.ErrUnavailable: too many wait, or ctx
// or the patience ended before the command's turn came, and nothing was stored; and lifecycle.ErrOutcomeUnknown when they ended
// while it was in flight.
func (g *group[C, R]) do(ctx context.Context, command C) (R, error) {
	m := &member[C, R]{command: command, until: time.Now().Add(g.patience), turn: make(chan bool, 1)}
	ctx, cancel := context.WithDeadline(ctx, m.until)
	defer cancel()
	var none R
	if err := g.join(ctx, m); err != nil {
		return none, err
	}
	select {
	case lead := <-m.turn:
		if !lead {
			return m.answer.value, m.answer.err
		}
		if ctx.Err() == nil { // it may have left before it woke
			g.lead(ctx, m)
			return m.answer.value, m.answer.err
		}
	case <-ctx.Done():
	}
	if g.withdraw(m) {
		return none, failed(ctx, "wait for a turn", ctx.Err())
	}
	select {
	case <-m.turn: // the answer came in the same moment
		return m.answer.value, m.answer.err
	default:
		return none, unknown("wait for an answer", ctx.Err())
	}
}

func (g *group[C, R]) join(ctx context.Context, m *member[C, R]) error {
	if err := ctx.Err(); err != nil { // the caller has gone already
		return failed(ctx, "wait for a turn", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) >= waitingMost {
		return fmt.Errorf("store: %d commands wait already: %w", waitingMost, lifecycle.ErrUnavailable)
	}
	g.waiting = append(g.waiting, m)
	g.next()
	return nil
}

// withdraw takes back a command that has not set off. A caller that was to lead lets the next one do it.
func (g *group[C, R]) withdraw(m *member[C, R]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, m)
	if i < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	if g.called == m {
		g.called = nil
		g.next()
	}
	return true
}

// next calls the first of those who could set off to lead, if there is room for a batch and nobody has been called already. g.mu is
// held.
func (g *group[C, R]) next() {
	if g.called != nil || !g.room() {
		return
	}
	for _, m := range g.waiting {
		if !g.busy(m.command) {
			g.called = m
			m.turn <- true
			return
		}
	}
}

// room tells whether one more batch may set off; g.mu is held.
func (g *group[C, R]) room() bool {
	switch g.crowds {
	case 0:
		return g.flights < max(singlesMost, g.alone)
	case 1:
		return g.flights <= singlesMost && len(g.waiting) >= enough // for those who wait may all wait for one row
	}
	return false
}

// lead carries a batch on behalf of the one who was called, and answers everyone in it. The next leader is let off first.
func (g *group[C, R]) lead(ctx context.Context, leader *member[C, R]) {
	batch := g.setOff(leader)
	commands := make([]C, len(batch))
	for i, m := range batch {
		commands[i] = m.command
		m.answer.err = unknown("carry a batch", context.Canceled) // what stands if carry panics
	}
	defer func() {
		g.land(commands)
		for _, m := range batch[1:] {
			m.turn <- false
		}
	}()
	if len(batch) > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(context.WithoutCancel(ctx), leader.until)
		defer cancel()
	}
	for i, a := range g.carry(ctx, commands) {
		batch[i].answer = a
	}
}

// setOff makes the batch: the leader, and all of those waiting who can come along.
func (g *group[C, R]) setOff(leader *member[C, R]) []*member[C, R] {
	g.mu.Lock()
	defer g.mu.Unlock()
	batch := []*member[C, R]{leader}
	g.occupy(leader.command)
	stay := g.waiting[:0]
	for _, m := range g.waiting {
		switch {
		case m == leader:
		case g.alone > 0 || len(batch) == batchMost || g.busy(m.command):
			stay = append(stay, m)
		default:
			batch = append(batch, m)
			g.occupy(m.command)
		}
	}
	clear(g.waiting[len(stay):])
	g.waiting, g.called = stay, nil
	g.flights++
	if len(batch) > 1 {
		g.crowds++
	}
	g.next() // those who stay may be many
	return batch
}

// busy reports whether a command of the same key is in flight; g.mu is held.
func (g *group[C, R]) busy(command C) bool { return g.key != nil && g.keys[g.key(command)] }

// occupy keeps others of the same key back; g.mu is held.
func (g *group[C, R]) occupy(command C) {
	if g.key == nil {
		return
	}
	if g.keys == nil {
		g.keys = map[string]bool{}
	}
	g.keys[g.key(command)] = true
}

// land makes room for the next batch.
func (g *group[C, R]) land(batch []C) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, command := range batch {
		if g.key != nil {
			delete(g.keys, g.key(command))
		}
	}
	g.flights--
	if len(batch) > 1 {
		g.crowds--
	}
	g.next()
}

// apart carries a batch, and where it failed for what may be the fault of one command, each command by itself, so that only the
// guilty one fails. What carry answers beside its error stands otherwise.
func apart[C, R any](batch []C, carry func([]C) ([]answer[R], error)) []answer[R] {
	answers, err := carry(batch)
	if len(batch) > 1 && mayBeOnesFault(err) {
		for i := range batch {
			alone, _ := carry(batch[i : i+1])
			answers[i] = alone[0]
		}
	}
	return answers
}

// mayBeOnesFault tells what PostgreSQL or this package made of the commands from what nobody in the batch can help: a broken
// connection, a server that is away.
func mayBeOnesFault(err error) bool {
	passes := errors.Is(err, lifecycle.ErrUnavailable) || errors.Is(err, lifecycle.ErrOutcomeUnknown)
	return err != nil && (refusedByServer(err) || !passes)
}

// everyone is the answer to a batch in which all fare the same.
func everyone[R, C any](batch []C, err error) ([]answer[R], error) {
	return slices.Repeat([]answer[R]{{err: err}}, len(batch)), err
}
