package main

import (
	"sync"
	"time"

	"framerun.dev/pkg/events"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/resource"
	"framerun.dev/pkg/safetext"
	"framerun.dev/pkg/web"
)

// remembered bounds the runs whose latest progress is kept. When it is reached all of it is forgotten, which only costs a
// spinner its number until the worker speaks again.
const remembered = 10_000

// progress remembers the workers' latest word on each run. It is nowhere stored, and may be lost without harm.
type progress struct {
	mu     sync.Mutex
	latest map[lifecycle.Ref]word
}

type word struct {
	version, at time.Time
	shown       *resource.Progress // the same pointer for as long as the word stands
}

func newProgress() *progress { return &progress{latest: map[lifecycle.Ref]word{}} }

// heard remembers a worker's progress and reports whether it is news; an older report that comes late is dropped. The bus is not
// trusted for what it says: what status would not have let pass is dropped too, and nothing is of a later time than now.
func (m *progress) heard(run lifecycle.Ref, p events.Progress) bool {
	if !fit(p) {
		return false
	}
	if now := time.Now(); p.At.After(now) {
		p.At = now
	}
	shown := &resource.Progress{Percent: p.Percent, At: web.Timestamp(p.At)}
	if p.Message != "" {
		shown.Message = &p.Message
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old, known := m.latest[run]
	if known && old.at.After(p.At) {
		return false
	}
	if !known && len(m.latest) >= remembered {
		clear(m.latest)
	}
	m.latest[run] = word{p.Version, p.At, shown}
	return true
}

// fit tells what status lets pass.
func fit(p events.Progress) bool {
	if p.Message != "" {
		if clean, ok := safetext.Clean(p.Message, events.MaxMessage); !ok || clean != p.Message {
			return false
		}
	}
	if p.Percent == nil {
		return p.Message != ""
	}
	return *p.Percent >= 0 && *p.Percent <= 100
}

// on is the latest word on exactly this version of the run; nil once the run has moved on, and while a version is shown that is older
// than the word.
func (m *progress) on(run lifecycle.Run) *resource.Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, ok := m.latest[run.Ref]
	if !ok {
		return nil
	}
	switch {
	case run.Ended() || w.version.Before(run.UpdatedAt):
		delete(m.latest, run.Ref)
		return nil
	case w.version.After(run.UpdatedAt):
		return nil
	}
	return w.shown
}
