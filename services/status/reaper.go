package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

const (
	scanEvery = 2 * time.Second // between two scans: how much later than its deadline a run ends at most
	dryEvery  = time.Minute     // between two scans of a dry run, which tells the same runs each time
	scanPage  = 100             // runs listed at once
	scanPages = 100             // in one scan; whatever is left comes with the next
	scanIn    = 30 * time.Second
	// forgetEvery is between two rounds of clearing away what was noted of runs that have ended.
	forgetEvery = time.Minute
)

// reaper ends runs that have been silent for longer than their state's deadline. It looks, and then goes run by run through the same
// step as the webhook, under a guard: what has moved on or spoken since the look is left alone. So any number of reapers may work at
// the same time, and one that sleeps between look and step does no harm.
type reaper struct {
	*server
	deadlines lifecycle.Deadlines
	dry       bool // only tell what would end
	log       *slog.Logger
	overdue   prometheus.Gauge
	reaped    *prometheus.CounterVec

	forgotten time.Time // when pulses were cleared away last
}

func newReaper(s *server, deadlines lifecycle.Deadlines, dry bool, log *slog.Logger, metrics prometheus.Registerer) *reaper {
	r := &reaper{server: s, deadlines: deadlines, dry: dry, log: log,
		overdue: prometheus.NewGauge(prometheus.GaugeOpts{Name: "framerun_overdue_runs",
			Help: "Open runs that the last scan found past their deadline."}),
		reaped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "framerun_reaped_total",
			Help: "Overdue runs by what became of them (failed, spared, retried)."}, []string{"result"}),
	}
	metrics.MustRegister(r.overdue, r.reaped)
	return r
}

// run scans now and then until ctx ends. It always returns nil: whatever goes wrong is tried again.
func (r *reaper) run(ctx context.Context) error {
	every := scanEvery
	if r.dry {
		every = dryEvery
	}
	for ctx.Err() == nil {
		if err := r.scan(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("overdue runs could not be looked at or ended, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
	}
	return nil
}

// scan looks once at all that is overdue. A run that cannot be ended does not keep the others from it, a database that is away does.
func (r *reaper) scan(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, scanIn)
	defer cancel()
	var last store.OverdueRun
	var first error
	found := 0
	for range scanPages {
		page, err := r.store.Overdue(ctx, r.deadlines, last, scanPage)
		if err != nil {
			return cmp.Or(first, err)
		}
		found += len(page)
		for _, run := range page {
			err := r.end(ctx, run)
			first = cmp.Or(first, err)
			if errors.Is(err, lifecycle.ErrUnavailable) && r.store.Ping(ctx) != nil { // not just a row that somebody holds
				return first
			}
		}
		if len(page) < scanPage {
			break
		}
		last = page[len(page)-1]
	}
	r.overdue.Set(float64(found))
	return cmp.Or(first, r.forgetPulses(ctx))
}

// end fails one run, unless it has moved on or its worker has spoken meanwhile.
func (r *reaper) end(ctx context.Context, run store.OverdueRun) error {
	about := []any{"kind", run.Kind, "run", run.ID, "state", run.State, "attempt", run.Attempt, "since", run.Since, "deadline", run.Limit.String()}
	if r.dry {
		r.log.Info("dry run: this run is overdue and would be failed", about...)
		return nil
	}
	applied, err := r.step(ctx, run.End(r.account, lateSentence(run.State)))
	switch {
	case err != nil:
		r.reaped.WithLabelValues("retried").Inc()
		return fmt.Errorf("ending run %s: %w", run.ID, err)
	case applied.Outcome == lifecycle.Applied:
		r.reaped.WithLabelValues("failed").Inc()
		r.log.Warn("run failed: nothing was heard of it before its deadline", about...)
	default:
		r.reaped.WithLabelValues("spared").Inc()
	}
	return nil
}

// lateSentence is what the client is told of a run that was silent for too long.
func lateSentence(state lifecycle.State) string {
	if state == lifecycle.AwaitingConfirm {
		return "Nobody confirmed in time, so the generation was closed. Please start it again."
	}
	return sentences["timeout"]
}

// forgetPulses clears away now and then what was noted of runs that have ended, but in a dry run.
func (r *reaper) forgetPulses(ctx context.Context) error {
	if r.dry || time.Since(r.forgotten) < forgetEvery {
		return nil
	}
	for {
		n, err := r.store.ForgetPulses(ctx, scanPage)
		if err != nil {
			return err
		}
		if n < scanPage {
			r.forgotten = time.Now()
			return nil
		}
	}
}
