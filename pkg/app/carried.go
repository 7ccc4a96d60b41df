package app

import (
	"context"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/relay"
	"github.com/prometheus/client_golang/prometheus"
)

// Carried counts what this service carries out of the outbox: it gives each destination the Count of its lane. It is to be called
// once.
func (p *Parts) Carried() func(destination string) func(result string, n int) {
	carried := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "framerun_outbox_carried_total",
		Help: "Outbox entries by destination and result (sent, retried, skipped, set_aside)."}, []string{"destination", "result"})
	p.Metrics.MustRegister(carried)
	return func(destination string) func(string, int) {
		return func(result string, n int) { carried.WithLabelValues(destination, result).Add(float64(n)) }
	}
}

// Announcing is the lane that carries public events to the feed: those that this service writes, and what others have left behind. Every
// service that writes runs one.
func (p *Parts) Announcing(count func(result string, n int)) (func(context.Context) error, error) {
	feed, err := p.Bus.Feed()
	if err != nil {
		return nil, err
	}
	return relay.Lane[lifecycle.Announcement]{Name: "events", Fresh: p.Store.FreshEvents(relay.Lease), Claim: p.Store.ClaimEvents, Sender: feed,
		Store: p.Store, Log: p.Log, Count: count}.Run, nil
}
