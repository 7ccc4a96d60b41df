package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"framerun.dev/pkg/lifecycle"
)

const (
	bodyPatience  = 100 * time.Millisecond // how long a body may take before its request gives up its place
	placePatience = 2 * time.Second        // how long a request whose body has come at last waits for another
)

// place is a request's among those in flight.
type place struct {
	places chan struct{}
	lost   bool // the request has none any more
}

// bounded turns requests away before they queue for the database: a quick 503 is worth more than a slow one.
func bounded(next http.Handler, limit int) http.Handler {
	places := make(chan struct{}, limit)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			p := &place{places: places}
			exchangeOf(r.Context()).place = p
			defer p.leave()
			next.ServeHTTP(w, r)
		default:
			WriteProblem(w, r, fmt.Errorf("web: %d requests are in flight already: %w", limit, lifecycle.ErrUnavailable))
		}
	})
}

func (p *place) leave() {
	if !p.lost {
		<-p.places
	}
}

// lend gives the place to others while a body is slow to come: a client that dawdles is in nobody's way but its own. Who has read the
// body takes it back, ahead of newcomers. The error of back is lifecycle.ErrUnavailable, when all places stay taken.
func (p *place) lend(ctx context.Context) (back func() error) {
	if p == nil { // nothing is bounded
		return func() error { return nil }
	}
	lent := time.AfterFunc(bodyPatience, func() { <-p.places })
	return func() error {
		if lent.Stop() {
			return nil
		}
		select {
		case p.places <- struct{}{}:
			return nil
		case <-time.After(placePatience):
		case <-ctx.Done():
		}
		p.lost = true
		return fmt.Errorf("web: no place for a request whose body was slow: %w", lifecycle.ErrUnavailable)
	}
}
