package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"framerun.dev/deploy/bench/load"
	"framerun.dev/deploy/bench/rows"
	"framerun.dev/pkg/lifecycle"
)

// waited is what was seen of many requests that wait (Prefer: wait).
type waited struct {
	count    int
	each     int64       // bytes of query's resident set for each of them
	together load.Sample // all wait for one run: from the answer to the change until each has its answer
	apart    load.Sample // each waits for a run of its own, while changes come at changeRate
}

const (
	changeRate = 500 // a second
	// waitFor is what waiting requests prefer, the most that query grants. All that is done with them has to fit into it.
	waitFor = 25
	// changing bounds how long changes are made while the others wait.
	changing = 4 * time.Second
)

// waiting lets count requests wait, weighs them and wakes them in both ways.
func (s *suite) waiting(ctx context.Context, count int) (waited, error) {
	before := s.memory("query")
	one, err := s.gather(ctx, count, 1)
	if err != nil {
		return waited{}, err
	}
	w := waited{count: count, each: (s.memory("query") - before) / int64(count)}
	if w.together, err = one.wake(ctx, s, 1); err != nil {
		return waited{}, err
	}
	many, err := s.gather(ctx, count, count)
	if err != nil {
		return waited{}, err
	}
	w.apart, err = many.wake(ctx, s, min(count, changeRate*int(changing.Seconds())))
	return w, err
}

// crowd is requests that wait, the i-th of them for run i modulo the number of runs.
type crowd struct {
	runs    []int64 // their numbers
	clients []*load.Client
	woken   []time.Time // zero: still waiting, or answered that nothing changed
	awake   atomic.Int64
	refusal atomic.Pointer[string] // an answer that is neither
	all     sync.WaitGroup
}

// gather opens runs and as many waiting requests as wished, and returns when all of them wait.
func (s *suite) gather(ctx context.Context, count, runs int) (*crowd, error) {
	if err := s.untilInFlight(ctx, func(n int) bool { return n == 0 }); err != nil { // those who waited before are gone
		return nil, err
	}
	first := s.take(runs)
	if err := rows.Open(ctx, s.db, lifecycle.Parsing, first, runs); err != nil {
		return nil, err
	}
	tags, err := s.tags(ctx, first, runs)
	if err != nil {
		return nil, err
	}
	c := &crowd{woken: make([]time.Time, count)}
	for i := range runs {
		c.runs = append(c.runs, first+int64(i))
	}
	for i := range count {
		client, err := load.Dial(ctx, s.address("query"))
		if err != nil {
			c.leave()
			return nil, err
		}
		client.Until(time.Now().Add((waitFor + 20) * time.Second))
		c.clients = append(c.clients, client)
		header := s.asPerson(i)
		header.Set("If-None-Match", tags[i%runs])
		header.Set("Prefer", "wait="+strconv.Itoa(waitFor))
		request := load.Request("GET", runPath(rows.ID(c.runs[i%runs])), header, nil)
		c.all.Go(func() { c.await(i, client, request) })
	}
	if err := s.untilInFlight(ctx, func(n int) bool { return n >= count || c.refusal.Load() != nil }); err != nil {
		c.leave()
		return nil, fmt.Errorf("%w, and %d should wait", err, count)
	}
	return c, nil
}

// await takes the one answer. A connection that breaks is left behind: it counts among those not woken.
func (c *crowd) await(i int, client *load.Client, request []byte) {
	status, body, err := client.Do(request)
	switch {
	case err != nil:
	case status == http.StatusOK:
		c.woken[i] = time.Now()
		c.awake.Add(1)
	case status != http.StatusNotModified:
		c.refusal.Store(new(fmt.Sprintf("%d %.200s", status, body)))
	}
}

// leave hangs up whoever still waits.
func (c *crowd) leave() {
	for _, client := range c.clients {
		client.Close()
	}
	c.all.Wait()
}

// tags are the ETags of rows that Open has made: id and updated_at, as every GET shows them.
func (s *suite) tags(ctx context.Context, first int64, n int) ([]string, error) {
	tags := make([]string, 0, n)
	found, err := s.db.QueryContext(ctx, `SELECT '"' || id || '.' || (extract(epoch FROM updated_at) * 1000000)::bigint || '"'
		FROM wf2des WHERE id BETWEEN $1 AND $2 ORDER BY id`, rows.ID(first), rows.ID(first+int64(n)-1))
	if err != nil {
		return nil, fmt.Errorf("bench: tags: %w", err)
	}
	defer found.Close()
	for found.Next() {
		var tag string
		if err := found.Scan(&tag); err != nil {
			return nil, fmt.Errorf("bench: tags: %w", err)
		}
		tags = append(tags, tag)
	}
	return tags, found.Err()
}

// untilInFlight waits until query's number of requests in flight is as wished.
func (s *suite) untilInFlight(ctx context.Context, wished func(n int) bool) error {
	for deadline := time.Now().Add(waitFor / 2 * time.Second); ; {
		n, err := s.inFlight(ctx)
		switch {
		case err != nil:
			return err
		case wished(n):
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("bench: %d requests are in flight at query", n)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// inFlight reads query's own gauge.
func (s *suite) inFlight(ctx context.Context) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.at.Services["query"].Ops+"/metrics", nil)
	if err != nil {
		return 0, fmt.Errorf("bench: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("bench: %w", err)
	}
	defer res.Body.Close()
	n := -1
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, "framerun_http_requests_in_flight") {
			if n, err = strconv.Atoi(line[strings.LastIndexByte(line, ' ')+1:]); err != nil {
				return 0, fmt.Errorf("bench: %w", err)
			}
		}
	}
	if n < 0 {
		return 0, fmt.Errorf("bench: query has no gauge of requests in flight")
	}
	return n, nil
}
