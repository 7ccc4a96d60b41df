package app

import (
	"context"
	"encoding/json/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// checkTimeout is how long a Check may take that does not say so itself.
const checkTimeout = 2 * time.Second

// Check is one dependency that readyz asks.
type Check struct {
	Name     string
	Critical bool          // without it the service cannot answer; NATS, for one, is not
	Off      bool          // switched off by the configuration: shown, not asked
	Timeout  time.Duration // 0 stands for two seconds
	Ask      func(ctx context.Context) error
}

// Health knows whether requests may be sent here.
type Health struct {
	checks   []Check
	draining atomic.Bool
}

// NewHealth asks checks, all at once, whenever it is asked itself.
func NewHealth(checks ...Check) *Health { return &Health{checks: checks} }

// Drain makes the service unready for good, whatever its dependencies say. Run calls it first of all when it is told to stop.
func (h *Health) Drain() { h.draining.Store(true) }

// report is what readyz answers.
type report struct {
	Status string   `json:"status"` // ready, degraded (a part is missing that can be missed), unready, draining
	Checks []answer `json:"checks,omitzero"`
}

type answer struct {
	Name     string  `json:"name"`
	OK       bool    `json:"ok"`
	Critical bool    `json:"critical"`
	Off      bool    `json:"off,omitzero"`
	Millis   float64 `json:"ms"`
	Error    string  `json:"error,omitzero"`
}

// ready reports the state in one word and every check. While draining nothing is asked.
func (h *Health) ready(ctx context.Context) report {
	if h.draining.Load() {
		return report{Status: "draining"}
	}
	r := report{Status: "ready", Checks: h.ask(ctx)}
	for _, a := range r.Checks {
		switch {
		case !a.OK && a.Critical:
			r.Status = "unready"
		case !a.OK && r.Status == "ready":
			r.Status = "degraded"
		}
	}
	return r
}

func (h *Health) ask(ctx context.Context) []answer {
	answers := make([]answer, len(h.checks))
	var asking sync.WaitGroup
	for i, check := range h.checks {
		asking.Go(func() { answers[i] = check.answer(ctx) })
	}
	asking.Wait()
	return answers
}

// answer asks once. A check that does not heed its context is left behind: readyz must answer all the same.
func (c Check) answer(ctx context.Context) answer {
	if c.Off {
		return answer{Name: c.Name, OK: true, Off: true}
	}
	timeout := c.Timeout
	if timeout == 0 {
		timeout = checkTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	start, done := time.Now(), make(chan error, 1)
	go func() { done <- c.Ask(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	a := answer{Name: c.Name, OK: err == nil, Critical: c.Critical, Millis: float64(time.Since(start).Microseconds()) / 1000}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

// ServeHTTP is /readyz: 200 for ready and degraded, 503 for unready and draining; ?verbose shows every check. The ops port is
// for operators, so a check's error is shown as it is.
func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found := h.ready(r.Context())
	if !r.URL.Query().Has("verbose") {
		found.Checks = nil
	}
	status := http.StatusOK
	if found.Status == "unready" || found.Status == "draining" {
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.MarshalWrite(w, found) // whoever asked has gone
}
