package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"framerun.dev/deploy/bench/load"
	"framerun.dev/deploy/bench/rows"
	"framerun.dev/pkg/events"
	"framerun.dev/pkg/lifecycle"
)

// relay is the way of jobs and events out of the outbox by claims: n runs are put there by nobody's store, one job and one event each, and
// intake's lanes carry them to SQS and to the public feed until nothing is left. It takes no connections; a run's time is not known.
func (s *suite) relay() contender {
	return contender{
		name: suiteName, service: "intake",
		prepare: func(ctx context.Context, n int) error {
			return rows.Open(ctx, s.db, lifecycle.Parsing, s.take(n), n)
		},
		run: func(ctx context.Context, _, n int) (load.Sample, error) {
			accepted := len(s.stack.SQS.Log())
			if err := rows.Untold(ctx, s.db, s.next-int64(n), n); err != nil {
				return load.Sample{}, err
			}
			began := time.Now()
			if err := s.wakeRelay(); err != nil {
				return load.Sample{}, err
			}
			if err := s.drained(ctx, time.Minute); err != nil {
				return load.Sample{}, err
			}
			sample := load.Sample{Count: n, Elapsed: time.Since(began)}
			if sent := len(s.stack.SQS.Log()) - accepted; sent < n {
				return sample, fmt.Errorf("bench: the outbox is empty, but SQS has taken %d of %d jobs", sent, n)
			}
			return sample, nil
		},
	}
}

// wakeRelay says that something waits, about runs of any kind.
func (s *suite) wakeRelay() error {
	bus, err := events.Connect(s.at.NATS, "bench", slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer bus.Close()
	bus.TellWake()
	return nil
}
