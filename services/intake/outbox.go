package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"framerun.dev/pkg/app"
	"framerun.dev/pkg/jobs"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/relay"
	"framerun.dev/pkg/store"
)

// carry sets up what works on the outbox: a lane for each kind of work, so that no queue waits for another, and the one to the public feed.
// What this service writes is handed to them; for what others write they are woken by hints, and look for themselves every second.
func carry(parts *app.Parts, queues *jobs.Queues) ([]func(context.Context) error, error) {
	announced := relay.NewBell()
	announcing, err := parts.Announcing(announced)
	if err != nil {
		return nil, err
	}
	background := []func(context.Context) error{newOutboxMetrics(parts).watch, sortJobs(parts), announcing}
	bells := map[relay.Bell]lifecycle.Kind{announced: ""} // events are handed to the lanes of those who write them
	for work := range queues.URLs {
		kind, waits := lifecycle.WF2Des, relay.NewBell()
		if work == string(lifecycle.Code2WF) {
			kind = lifecycle.Code2WF
		}
		bells[waits] = kind
		background = append(background, relay.Lane[lifecycle.Job]{Name: "jobs of " + work, Fresh: parts.Store.FreshJobs(work, relay.Lease),
			Claim: parts.Store.ClaimJobs(work), Sender: queues, Store: parts.Store, Wake: waits, Log: parts.Log, Count: parts.Carried("jobs"),
			SetAside: parts.Bus.TellStranded}.Run)
	}
	return background, parts.Bus.HearOutbox(func(said lifecycle.Kind) {
		for bell, kind := range bells {
			if said == kind || said == "" {
				bell.Ring()
			}
		}
	})
}

// sortJobs finds jobs that programs which do not know of work (migrations/00013) leave in the outbox while this one is being rolled out,
// until ctx ends. Once none of them runs anywhere any more it can go.
func sortJobs(parts *app.Parts) func(context.Context) error {
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := parts.Store.SortJobs(ctx); err != nil && ctx.Err() == nil {
				parts.Log.Warn("outbox not readable, trying again", "error", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(relay.Look):
			}
		}
		return nil
	}
}

// outboxMetrics tells how the outbox does, whoever carries it: what waits, and for how long.
type outboxMetrics struct {
	store   *store.Store
	waiting *prometheus.GaugeVec
	oldest  *prometheus.GaugeVec
}

func newOutboxMetrics(parts *app.Parts) *outboxMetrics {
	m := &outboxMetrics{
		store: parts.Store,
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "framerun_outbox_entries",
			Help: "Outbox entries by destination and state (pending, set_aside)."}, []string{"destination", "state"}),
		oldest: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "framerun_outbox_oldest_seconds",
			Help: "Age of the oldest pending outbox entry by destination."}, []string{"destination"}),
	}
	parts.Metrics.MustRegister(m.waiting, m.oldest)
	return m
}

// watch looks at the outbox now and then until ctx ends. While PostgreSQL is down the gauges stay as they were.
func (m *outboxMetrics) watch(ctx context.Context) error {
	for ctx.Err() == nil {
		backlogs, _ := m.store.Backlogs(ctx) // readyz tells of a PostgreSQL that is down
		for _, b := range backlogs {
			m.waiting.WithLabelValues(b.Destination, "pending").Set(float64(b.Pending))
			m.waiting.WithLabelValues(b.Destination, "set_aside").Set(float64(b.SetAside))
			m.oldest.WithLabelValues(b.Destination).Set(b.OldestAge)
		}
		select {
		case <-ctx.Done():
		case <-time.After(15 * time.Second):
		}
	}
	return nil
}
