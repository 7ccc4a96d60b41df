package auth

import (
	"sync"
	"time"
)

// memorySize bounds every memory of this package, in entries.
const memorySize = 10_000

// memory remembers answers for a while, never more than memorySize of them. Its zero value is empty and ready.
//
// It keeps two generations. When the young one is full it becomes the old one, and what was old is forgotten; an old entry
// that is asked for moves to the young. So what is in use stays, a flood of one-time entries costs one generation at most,
// and nothing is ever searched or sorted.
type memory[K comparable, V any] struct {
	mu         sync.Mutex
	young, old map[K]remembered[V]
}

type remembered[V any] struct {
	value V
	until time.Time
}

// recall gives what was kept under key, unless its time is over.
func (m *memory[K, V]) recall(key K, now time.Time) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	entry, ok := m.young[key]
	if !ok {
		if entry, ok = m.old[key]; ok {
			m.add(key, entry)
		}
	}
	if !ok || !now.Before(entry.until) {
		var none V
		return none, false
	}
	return entry.value, true
}

// keep remembers value under key for as long as the time is before until.
func (m *memory[K, V]) keep(key K, value V, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(key, remembered[V]{value, until})
}

// add puts an entry among the young. The caller holds mu.
func (m *memory[K, V]) add(key K, entry remembered[V]) {
	if len(m.young) >= memorySize/2 {
		m.old, m.young = m.young, nil
	}
	if m.young == nil {
		m.young = make(map[K]remembered[V])
	}
	m.young[key] = entry
}
