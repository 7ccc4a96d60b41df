package app

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// server has bounds for everything that a slow or hostile client could stretch.
func (c Config) server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second, // header and body; a handler may wait longer once it has read its body
		WriteTimeout:      40 * time.Second, // longer than the 25 s that a GET may wait; streams move it themselves
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn),

		DisableGeneralOptionsHandler: true, // `OPTIONS *` is answered with the service's manners too
	}
}

// drain tells requests that the service is about to stop, by being closed.
type drain chan struct{}

type drainKey struct{}

// Draining is closed when the service has been told to stop: a request that waits for news should then answer with what it has.
// Outside of Run it is never closed.
func Draining(ctx context.Context) <-chan struct{} {
	d, _ := ctx.Value(drainKey{}).(drain)
	return d
}

func (d drain) in(ctx context.Context) context.Context { return context.WithValue(ctx, drainKey{}, d) }

// announced asks clients to open no further request on a connection that is about to end: one that arrives in the moment of
// closing would be lost.
func (d drain) announced(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-d:
			w.Header().Set("Connection", "close")
		default:
		}
		h.ServeHTTP(w, r)
	})
}
