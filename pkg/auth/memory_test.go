package auth

import (
	"testing"
	"time"
)

func TestMemoryIsBounded(t *testing.T) {
	var m memory[int, int]
	now := time.Unix(1_000, 0)
	until := now.Add(time.Minute)
	for i := range 5 * memorySize {
		m.keep(i, i, until)
		if held := len(m.young) + len(m.old); held > memorySize {
			t.Fatalf("%d entries after %d, want at most %d", held, i+1, memorySize)
		}
	}
	if _, ok := m.recall(0, now); ok {
		t.Error("the first of 50,000 is still there")
	}
	for i := 5*memorySize - memorySize/2; i < 5*memorySize; i++ {
		if got, ok := m.recall(i, now); !ok || got != i {
			t.Fatalf("entry %d, one of the latest, is %d, %t", i, got, ok)
		}
	}
}

func TestMemoryKeepsWhatIsUsed(t *testing.T) {
	var m memory[int, string]
	now := time.Unix(1_000, 0)
	m.keep(-1, "in use", now.Add(time.Minute))
	for i := range 5 * memorySize {
		m.keep(i, "once", now.Add(time.Minute))
		if i%1000 == 0 {
			if _, ok := m.recall(-1, now); !ok {
				t.Fatalf("forgotten after %d others though it was in use", i)
			}
		}
	}
}

func TestMemoryEnds(t *testing.T) {
	var m memory[string, int]
	now := time.Unix(1_000, 0)
	m.keep("k", 1, now.Add(time.Second))
	if _, ok := m.recall("k", now.Add(time.Second-1)); !ok {
		t.Error("forgotten too early")
	}
	if _, ok := m.recall("k", now.Add(time.Second)); ok {
		t.Error("remembered too long")
	}
	m.keep("k", 2, now.Add(time.Hour))
	if got, _ := m.recall("k", now); got != 2 {
		t.Errorf("kept again: %d, want the later value", got)
	}
}
