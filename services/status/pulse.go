package main

import (
	"context"
	"sync"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

const (
	// A worker may report many times a second; its pulse is written at most once in this time, or in a tenth of the deadline if that is
	// less. So a deadline may count from so much before the worker's last word.
	pulseEvery = 5 * time.Second
	// pulsesMost bounds the memory of what was written. Whoever is forgotten is only written once more.
	pulsesMost = 10_000
)

// pulse notes in the store that workers have spoken, so that every replica's deadlines begin anew. It is silent for states that have
// no deadline, and while the designer is asked.
type pulse struct {
	deadlines lifecycle.Deadlines

	mu    sync.Mutex
	noted map[beat]time.Time // by this process's own clock, which measures the time between two notes and nothing else
}

// beat is one worker's: another attempt or state begins a new one.
type beat struct {
	run     lifecycle.Ref
	attempt int
	state   lifecycle.State
}

// note writes the worker's pulse if it is time to. It reports false if the run is not open in this attempt any more.
func (p *pulse) note(ctx context.Context, to *store.Store, run lifecycle.Run) (bool, error) {
	limit := p.deadlines[run.State]
	if limit <= 0 || !run.State.Working() {
		return true, nil
	}
	b := beat{run.Ref, run.Attempt, run.State}
	if !p.due(b, min(pulseEvery, limit/10)) {
		return true, nil
	}
	open, err := to.Pulse(ctx, run.Ref, run.Attempt)
	if err != nil {
		p.forget(b)
	}
	return open, err
}

// due reports whether nothing was noted for so long, and if so takes it as noted: of many reports at once one is written.
func (p *pulse) due(b beat, every time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if last, ok := p.noted[b]; ok && now.Sub(last) < every {
		return false
	}
	if p.noted == nil || len(p.noted) >= pulsesMost {
		p.noted = map[beat]time.Time{}
	}
	p.noted[b] = now
	return true
}

func (p *pulse) forget(b beat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.noted, b)
}
