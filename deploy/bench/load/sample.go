package load

import (
	"bytes"
	"slices"
	"time"
)

// Sample is what was seen of one load.
type Sample struct {
	Count    int // good answers
	Failed   int
	Failure  string // the first bad answer: its status and the beginning of its body
	Elapsed  time.Duration
	P50, P99 time.Duration // of the good ones
}

// Of makes a sample of what took how long. It sorts took.
func Of(took []time.Duration, elapsed time.Duration) Sample {
	slices.Sort(took)
	return Sample{Count: len(took), Elapsed: elapsed, P50: percentile(took, 50), P99: percentile(took, 99)}
}

// Rate is good answers a second.
func (s Sample) Rate() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Count) / s.Elapsed.Seconds()
}

// percentile is the smallest value that p percent of sorted do not exceed; 0 of nothing.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*p+99)/100-1]
}

func contains(body, part []byte) bool { return len(part) == 0 || bytes.Contains(body, part) }
