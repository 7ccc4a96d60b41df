package web

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestLimiter(t *testing.T) {
	now := time.Date(2026, 1, 31, 8, 30, 0, 0, time.UTC)
	l := NewLimiter(2, 3)
	for i := range 3 {
		if err := l.Take("ann", now); err != nil {
			t.Fatalf("take %d of a burst of 3: %v", i+1, err)
		}
	}
	limited, ok := errors.AsType[*RateLimitedError](l.Take("ann", now))
	if !ok || limited.RetryAfter != time.Second/2 {
		t.Fatalf("the fourth at once: %v, want a wait of half a second", limited)
	}
	if err := l.Take("bob", now); err != nil {
		t.Errorf("another caller pays for the first: %v", err)
	}
	if err := l.Take("ann", now.Add(time.Second/2)); err != nil {
		t.Errorf("after the time that was named: %v", err)
	}
	if err := l.Take("ann", now.Add(time.Second/2)); err == nil {
		t.Error("refused takes gave tokens back that were never taken")
	}
}

func TestLimiterOff(t *testing.T) {
	l := NewLimiter(0, 0)
	for range 10_000 {
		if err := l.Take("ann", time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLimiterMemoryIsBounded(t *testing.T) {
	now := time.Date(2026, 1, 31, 8, 30, 0, 0, time.UTC)
	l := NewLimiter(1, 1)
	for i := range 3 * callersKept {
		now = now.Add(time.Millisecond)
		if err := l.Take(fmt.Sprint(i), now); err != nil {
			t.Fatal(err)
		}
		if len(l.buckets) > callersKept {
			t.Fatalf("%d callers are remembered", len(l.buckets))
		}
	}
	if err := l.Take(fmt.Sprint(3*callersKept-1), now); err == nil {
		t.Error("a busy caller was forgotten although there was room")
	}
}
