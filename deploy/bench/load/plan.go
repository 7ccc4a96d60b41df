package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Plan is a bounded load: Count requests by Clients connections, each of which asks again as soon as it is answered.
type Plan struct {
	Address string // host:port
	Clients int
	Count   int
	// Request gives the i-th request, 0 ≤ i < Count, as ready bytes. It is called by many goroutines at once.
	Request func(i int) []byte
	// Status is that of a good answer. Anything else is a failure, counted and not timed.
	Status int
	// Holds, unless empty, must stand in the body of a good answer.
	Holds string
}

// patience bounds one request, longer than any server of the suite may take: one that hangs ends the plan with an error.
const patience = 15 * time.Second

// Run carries the plan out. The connections stand before the clock starts. A connection that breaks is an error, a bad answer is
// not: it is in the sample.
func (p Plan) Run(ctx context.Context) (Sample, error) {
	clients, err := p.dial(ctx)
	defer func() {
		for _, c := range clients {
			c.Close()
		}
	}()
	if err != nil {
		return Sample{}, err
	}
	defer context.AfterFunc(ctx, func() {
		for _, c := range clients {
			c.Close()
		}
	})()
	r := run{Plan: p, took: make([]time.Duration, p.Count)}
	errs := make([]error, len(clients))
	var all sync.WaitGroup
	began := time.Now()
	for i, c := range clients {
		all.Go(func() { errs[i] = r.ask(c) })
	}
	all.Wait()
	return r.sample(time.Since(began)), errors.Join(errs...)
}

func (p Plan) dial(ctx context.Context) ([]*Client, error) {
	var clients []*Client
	for range p.Clients {
		c, err := Dial(ctx, p.Address)
		if err != nil {
			return clients, err
		}
		clients = append(clients, c)
	}
	return clients, nil
}

// run is a plan under way. A request's place in took belongs to whoever has drawn its number.
type run struct {
	Plan
	next    atomic.Int64
	took    []time.Duration // 0: failed
	failure sync.Once
	said    string
}

func (r *run) ask(c *Client) error {
	holds := []byte(r.Holds)
	for {
		i := int(r.next.Add(1)) - 1
		if i >= r.Count {
			return nil
		}
		request := r.Request(i)
		began := time.Now()
		c.Until(began.Add(patience))
		status, body, err := c.Do(request)
		if err != nil {
			line, _, _ := bytes.Cut(request, []byte("\r\n"))
			return fmt.Errorf("%s: %w", line, err)
		}
		if status != r.Status || !contains(body, holds) {
			r.failure.Do(func() { r.said = fmt.Sprintf("%d %.300s", status, body) })
			continue
		}
		r.took[i] = max(time.Since(began), 1)
	}
}

func (r *run) sample(elapsed time.Duration) Sample {
	good := slices.DeleteFunc(r.took, func(d time.Duration) bool { return d == 0 })
	s := Of(good, elapsed)
	s.Failed, s.Failure = r.Count-len(good), r.said
	return s
}
