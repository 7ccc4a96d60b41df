package main

import (
	"errors"
	"sync"
	"time"

	"framerun.dev/pkg/events"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/resource"
	"framerun.dev/pkg/safetext"
	"framerun.dev/pkg/web"
)

// look is how long a waiting request trusts silence: NATS may lose every hint.
const look = time.Second

// remembered bounds the runs whose latest progress is kept. When it is reached all of it is forgotten, which only costs a
// spinner its number until the worker speaks again.
const remembered = 10_000

// watch wakes requests that wait for a run and remembers the latest progress. It holds no truth.
type watch struct {
	mu      sync.Mutex
	waiting map[lifecycle.Ref]map[chan struct{}]struct{}
	latest  map[lifecycle.Ref]events.Progress
}

func newWatch() *watch {
	return &watch{waiting: map[lifecycle.Ref]map[chan struct{}]struct{}{}, latest: map[lifecycle.Ref]events.Progress{}}
}

// listen lets the bus wake and tell the watch.
func (w *watch) listen(bus *events.Bus) error {
	return errors.Join(bus.HearChanged(w.changed), bus.HearProgress(w.progressed))
}

// changes returns a channel that holds a token when something about the run was told since the last look, and a function that ends
// the watching.
func (w *watch) changes(run lifecycle.Ref) (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting[run] == nil {
		w.waiting[run] = map[chan struct{}]struct{}{}
	}
	w.waiting[run][c] = struct{}{}
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waiting[run], c)
		if len(w.waiting[run]) == 0 {
			delete(w.waiting, run)
		}
	}
}

// changed wakes whoever waits for the run.
func (w *watch) changed(run lifecycle.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wake(run)
}

func (w *watch) wake(run lifecycle.Ref) {
	for c := range w.waiting[run] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// progressed remembers a worker's progress; an older report that comes late is dropped. The bus is not trusted for what it says:
// what status would not have let pass is dropped too, and nothing is of a later time than now.
func (w *watch) progressed(run lifecycle.Ref, p events.Progress) {
	if p.Message != "" {
		clean, ok := safetext.Clean(p.Message, events.MaxMessage)
		if !ok || clean != p.Message {
			return
		}
	}
	if p.Percent != nil && !(*p.Percent >= 0 && *p.Percent <= 100) || p.Percent == nil && p.Message == "" {
		return
	}
	if now := time.Now(); p.At.After(now) {
		p.At = now
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	old, known := w.latest[run]
	if known && old.At.After(p.At) {
		return
	}
	if !known && len(w.latest) >= remembered {
		clear(w.latest)
	}
	w.latest[run] = p
	w.wake(run)
}

// progress is the latest word on exactly this version of the run; nil once the run has moved on.
func (w *watch) progress(run lifecycle.Run) *resource.Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.latest[run.Ref]
	if !ok {
		return nil
	}
	if run.Ended() || !p.Version.Equal(run.UpdatedAt) {
		delete(w.latest, run.Ref)
		return nil
	}
	shown := &resource.Progress{Percent: p.Percent, At: web.Timestamp(p.At)}
	if p.Message != "" {
		shown.Message = &p.Message
	}
	return shown
}
