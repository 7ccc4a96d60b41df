package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options tell Wrap what the services differ in.
type Options struct {
	Service     string                // a label of every metric
	Logger      *slog.Logger          // gets one line a request
	Metrics     prometheus.Registerer // a registry serves one Wrap only
	MaxInFlight int                   // more requests than this at once are answered 503, slow bodies aside; 0 sets no bound
	NoCORS      bool                  // for routes that no browser may call
}

// Wrap puts the manners around a router: request id and trace, one log line, metrics, recovery from panics, CORS, security
// headers and the bound on requests in flight. They stand outside of the router so that its 404 and 405 have them as well.
func Wrap(router http.Handler, o Options) http.Handler {
	h := router
	if o.MaxInFlight > 0 {
		h = bounded(h, o.MaxInFlight)
	}
	if !o.NoCORS {
		h = cors(h)
	}
	return observed(hardened(h), o.Logger, newMeter(o.Metrics, o.Service))
}

// observed keeps the record of every request and writes it down when the answer is out.
func observed(next http.Handler, logger *slog.Logger, m *meter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		m.inFlight.Inc()
		x, r := begin(r)
		w.Header().Set("X-Request-Id", x.requestID)

		abort := recovered(&recorder{ResponseWriter: w, x: x}, r, next)

		m.inFlight.Dec()
		x.settle(r)
		m.count(r.Method, x, time.Since(start))
		x.log(r, logger, time.Since(start))
		if abort {
			panic(http.ErrAbortHandler)
		}
	})
}

// recovered runs next. It reports whether the connection must be cut: after a panic in the middle of an answer the client must
// not take what it has for the whole.
func recovered(w http.ResponseWriter, r *http.Request, next http.Handler) (abort bool) {
	defer func() {
		x, p := exchangeOf(r.Context()), recover()
		switch {
		case p == nil:
		case p == http.ErrAbortHandler:
			abort = true
		default:
			x.notes = append(x.notes, slog.String("stack", string(debug.Stack())))
			abort = x.status != 0
			WriteProblem(w, r, fmt.Errorf("panic: %v", p))
		}
	}()
	next.ServeHTTP(w, r)
	return false
}

// statusClientGone stands in log and metrics for an answer that nobody was left to read, so that it does not count among the
// failures of the service. It is never sent.
const statusClientGone = 499

// settle decides what the record calls the outcome.
func (x *exchange) settle(r *http.Request) {
	gone := errors.Is(r.Context().Err(), context.Canceled)
	switch {
	case gone && (x.status == 0 || x.status == http.StatusServiceUnavailable):
		x.status = statusClientGone
	case x.status == 0:
		x.status = http.StatusOK // net/http sends it for a handler that wrote nothing
	}
}

// log writes the request's one line. It holds no path, query or body: those are a stranger's text.
func (x *exchange) log(r *http.Request, logger *slog.Logger, took time.Duration) {
	level := slog.LevelInfo
	handler := logger.Handler()
	switch {
	case x.status == http.StatusServiceUnavailable:
		level = slog.LevelWarn
	case x.status >= 500 || x.code == "internal": // a panic in the middle of a good answer
		level = slog.LevelError
	}
	if !handler.Enabled(r.Context(), level) {
		return
	}
	line := slog.NewRecord(time.Now(), level, "request", 0) // where in the program it is written nobody asks
	line.AddAttrs(
		slog.String("method", methodWord(r.Method)),
		slog.String("route", x.routeWord()),
		slog.Int("status", x.status),
		slog.Int64("bytes", x.bytes),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000),
		slog.String("request_id", x.requestID),
		slog.String("trace_id", x.trace.id),
	)
	if x.code != "" {
		line.AddAttrs(slog.String("code", x.code))
	}
	if x.cause != nil {
		line.AddAttrs(slog.String("error", x.cause.Error()))
	}
	line.AddAttrs(x.notes...)
	_ = handler.Handle(r.Context(), line) // there is nobody left to tell that a line could not be written
}
