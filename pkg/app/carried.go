package app

import "github.com/prometheus/client_golang/prometheus"

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
