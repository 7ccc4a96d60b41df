package web

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// callersKept bounds the memory of a Limiter.
const callersKept = 10_000

// Limiter bounds how often each caller may do something: a token bucket a caller, in this process alone. It is there against a
// plugin that runs wild, not to share out capacity. It is safe for concurrent use.
type Limiter struct {
	rate  rate.Limit
	burst int

	mu      sync.Mutex
	buckets map[string]*rate.Limiter
}

// NewLimiter lets each caller do perSecond things a second on average, and burst at once. perSecond 0 lets everything pass.
func NewLimiter(perSecond, burst int) *Limiter {
	return &Limiter{rate: rate.Limit(perSecond), burst: burst, buckets: map[string]*rate.Limiter{}}
}

// Take takes one token of caller's. Error: *RateLimitedError, with the time until there is one.
func (l *Limiter) Take(caller string, now time.Time) error {
	if l.rate == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket := l.buckets[caller]
	if bucket == nil {
		l.makeRoom(now)
		bucket = rate.NewLimiter(l.rate, l.burst)
		l.buckets[caller] = bucket
	}
	wanted := bucket.ReserveN(now, 1)
	wait := wanted.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	wanted.CancelAt(now)
	return &RateLimitedError{RetryAfter: wait}
}

// makeRoom forgets the callers whose buckets are full again, for whom nothing changes; if all are busy, everybody.
func (l *Limiter) makeRoom(now time.Time) {
	if len(l.buckets) < callersKept {
		return
	}
	for caller, bucket := range l.buckets {
		if bucket.TokensAt(now) >= float64(l.burst) {
			delete(l.buckets, caller)
		}
	}
	if len(l.buckets) >= callersKept {
		clear(l.buckets)
	}
}
