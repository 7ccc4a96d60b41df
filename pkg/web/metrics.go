package web

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// meter counts requests. Its labels hold route patterns and fixed words only: a caller's bytes would panic or fill the memory.
type meter struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

// newMeter registers the three metrics, and panics if the registry has them already: two Wraps on one registry are a mistake.
func newMeter(registry prometheus.Registerer, service string) *meter {
	labels := prometheus.Labels{"service": service}
	m := &meter{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "framerun_http_requests_total", Help: "Requests answered, by status code; 499: the client had gone.", ConstLabels: labels,
		}, []string{"route", "method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "framerun_http_request_duration_seconds", Help: "Time from the request's header to the answer's end.", ConstLabels: labels,
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"route", "method"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "framerun_http_requests_in_flight", Help: "Requests being answered.", ConstLabels: labels,
		}),
	}
	registry.MustRegister(m.requests, m.seconds, m.inFlight)
	return m
}

func (m *meter) count(method string, x *exchange, took time.Duration) {
	method = methodWord(method)
	m.requests.WithLabelValues(x.routeWord(), method, strconv.Itoa(x.status)).Inc()
	m.seconds.WithLabelValues(x.routeWord(), method).Observe(took.Seconds())
}

// routeWord is the route's pattern, or one word for everything that has none.
func (x *exchange) routeWord() string {
	if x.route == "" {
		return "unmatched"
	}
	return x.route
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

// methodWord keeps a client from inventing label values and log text.
func methodWord(method string) string {
	if slices.Contains(methods, method) {
		return method
	}
	return "other"
}
