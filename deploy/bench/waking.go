package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"framerun.dev/deploy/bench/load"
	"framerun.dev/deploy/bench/rows"
)

// wake changes the first n of the crowd's runs at changeRate by the worker's word that it has parsed them, and tells how long after the
// change's own answer those who waited for them were answered. Who was not woken in time counts as failed.
func (c *crowd) wake(ctx context.Context, s *suite, n int) (load.Sample, error) {
	defer c.leave()
	began := time.Now()
	changed, err := s.change(ctx, c.runs[:n])
	if err != nil {
		return load.Sample{}, err
	}
	c.untilAwake(ctx, n)
	c.leave()
	elapsed := time.Since(began)
	var took []time.Duration
	for i, at := range c.woken {
		if run := i % len(c.runs); run < n && !at.IsZero() {
			took = append(took, max(at.Sub(changed[run]), 1)) // the hint may be quicker than the answer
		}
	}
	sample := load.Of(took, elapsed)
	sample.Failed = c.concerned(n) - len(took)
	if refusal := c.refusal.Load(); refusal != nil {
		sample.Failure = *refusal
	}
	return sample, nil
}

// concerned counts those who wait for one of the first n runs.
func (c *crowd) concerned(n int) int {
	whole, rest := len(c.woken)/len(c.runs), len(c.woken)%len(c.runs)
	return whole*n + min(rest, n)
}

// untilAwake gives the concerned time, more than the longest that query trusts silence.
func (c *crowd) untilAwake(ctx context.Context, n int) {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); {
		if int(c.awake.Load()) >= c.concerned(n) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// changers is how many workers speak, enough for changeRate with time to spare.
const changers = 16

// change has the runs parsed at changeRate and returns when each of them was answered.
func (s *suite) change(ctx context.Context, runs []int64) ([]time.Time, error) {
	words := make(requests, len(runs))
	for i, n := range runs {
		var err error
		if words[i], err = s.webhook(rows.ID(n), map[string]any{"event": "parsed"}); err != nil {
			return nil, err
		}
	}
	answered, errs := make([]time.Time, len(runs)), make([]error, changers)
	var next atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for k := range changers {
		all.Go(func() {
			client, err := load.Dial(ctx, s.address("status"))
			if errs[k] = err; err != nil {
				return
			}
			defer client.Close()
			for i := int(next.Add(1)) - 1; i < len(runs) && errs[k] == nil; i = int(next.Add(1)) - 1 {
				time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / changeRate)))
				answered[i], errs[k] = tell(client, words[i])
			}
		})
	}
	all.Wait()
	return answered, errors.Join(errs...)
}

func tell(client *load.Client, word []byte) (time.Time, error) {
	client.Until(time.Now().Add(10 * time.Second))
	status, body, err := client.Do(word)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("bench: a worker's word is answered %d: %.200s", status, body)
	}
	return time.Now(), err
}
