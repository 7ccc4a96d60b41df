package main

import (
	"encoding/json/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/store"
	"framerun.dev/pkg/web"
)

// More requests than PostgreSQL can serve are turned away at once, with the time after which to come again, and those that were taken
// are carried out: the pool is never drowned.
func TestTooManyAtOnceAreTurnedAwayBeforeThePoolDrowns(t *testing.T) {
	t.Parallel()
	w := servicetest.New(t)
	small, err := store.Open(w.URL, store.Options{Pool: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { small.Close() })
	const taken, callers = 8, 200
	s := &server{store: small, people: w.People, limits: web.NewLimiter(0, 0)}
	c := w.ServeWith(t, s.routes(), web.Options{MaxInFlight: taken})
	body, err := json.Marshal(plainCode2WF)
	if err != nil {
		t.Fatal(err)
	}
	if first := c.Send(t, "POST", code2wf, w.Owner, string(body)); first.Status != 201 { // the caller is known and statements are prepared
		t.Fatalf("%d %s", first.Status, first.Body)
	}
	jam, err := w.SQL.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	defer jam.Rollback()
	jam.MustExec(`LOCK TABLE code2wf`)
	replies, errs := make(chan servicetest.Reply, callers), make(chan error, callers)
	var asking sync.WaitGroup
	for range callers {
		r := c.Request(t, "POST", code2wf, w.Owner, string(body))
		asking.Go(func() {
			reply, err := c.Try(r)
			replies <- reply
			errs <- err
		})
	}
	start := time.Now()
	for range callers - taken {
		reply := <-replies
		reply.Refused(t, http.StatusServiceUnavailable, "unavailable")
		if reply.Header.Get("Retry-After") != "2" {
			t.Errorf("Retry-After is %q", reply.Header.Get("Retry-After"))
		}
	}
	if took := time.Since(start); took > 3*time.Second { // PostgreSQL's own patience is four
		t.Errorf("it took %s to turn callers away", took)
	}
	if err := jam.Rollback(); err != nil {
		t.Fatal(err)
	}
	asking.Wait()
	for range taken {
		if reply := <-replies; reply.Status != 201 {
			t.Errorf("a request that was taken: %d %s", reply.Status, reply.Body)
		}
	}
	for range callers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	var rows int
	if err := w.SQL.Get(&rows, `SELECT count(*) FROM code2wf`); err != nil || rows != 1+taken {
		t.Errorf("%d rows were made, %v; want %d", rows, err, 1+taken)
	}
}
