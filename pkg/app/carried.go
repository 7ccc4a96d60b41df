package app

import (
	"context"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/relay"
	"github.com/prometheus/client_golang/prometheus"
)

func newCarried() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "framerun_outbox_carried_total",
		Help: "Outbox entries by destination and result (sent, retried, skipped, set_aside)."}, []string{"destination", "result"})
}

// Carried counts what this service carries out of the outbox: it is the Count of a destination's lane.
func (p *Parts) Carried(destination string) func(result string, n int) {
	return func(result string, n int) { p.carried.WithLabelValues(destination, result).Add(float64(n)) }
}

// Announcing is the lane that carries public events to the feed: those that this service writes, and what others have left behind. Every
// service that writes runs one. wake is a hint that events wait to be claimed; it may be nil.
func (p *Parts) Announcing(wake <-chan struct{}) (func(context.Context) error, error) {
	feed, err := p.Bus.Feed()
	if err != nil {
		return nil, err
	}
	return relay.Lane[lifecycle.Announcement]{Name: "events", Fresh: p.Store.FreshEvents(relay.Lease), Claim: p.Store.ClaimEvents, Sender: feed,
		Store: p.Store, Wake: wake, Log: p.Log, Count: p.Carried("events")}.Run, nil
}
