package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"framerun.dev/deploy/bench/load"
)

// contender is one side of a contest: something that does n operations over c connections. A contest asks it for one round at a time.
type contender struct {
	name string
	// service of the suite that does the work; empty for a baseline.
	service string
	// prepare makes what a round needs; it is not measured. It may be nil.
	prepare func(ctx context.Context, n int) error
	run     func(ctx context.Context, clients, n int) (load.Sample, error)
	// stored counts the rows that the round has left behind, so that nobody wins by doing nothing. It is nil where nothing is stored.
	stored func(ctx context.Context) (int, error)
	// timed says that a round ends by time and not by count.
	timed bool
	// least is how many operations a connection must do before it shows its pace; 0 stands for 2.
	least int
	// lenient lets bad answers pass into the report. Everywhere else one bad answer ends the measuring.
	lenient bool
}

// pace says how much is measured.
type pace struct {
	rounds int
	length time.Duration // of a round, about; 0: every round has most operations, and nobody is warmed up
	most   int           // operations a round
}

// standing is how a contender did: medians over the rounds.
type standing struct {
	name     string
	rate     float64 // operations a second
	p50, p99 time.Duration
	failed   int
	failure  string
	memory   int64 // the service's resident set in bytes, at its largest; 0 for a baseline
}

// contest measures contenders against each other in one go: round by round, everybody in each round, the order turning, so that
// whatever else the machine does meets all of them alike.
type contest struct {
	contenders []contender
	clients    int
	pace       pace
	settle     func(context.Context) error // waits until nothing of the last round is still under way
	memory     func(service string) int64
}

func (c contest) hold(ctx context.Context) ([]standing, error) {
	counts := make([]int, len(c.contenders))
	for i, who := range c.contenders {
		n, err := c.count(ctx, who)
		if err != nil {
			return nil, err
		}
		counts[i] = n
	}
	samples := make([][]load.Sample, len(c.contenders))
	standings := make([]standing, len(c.contenders))
	for round := range c.pace.rounds {
		for turn := range c.contenders {
			i := (turn + round) % len(c.contenders)
			s, err := c.round(ctx, c.contenders[i], counts[i])
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], s)
			if service := c.contenders[i].service; service != "" {
				standings[i].memory = max(standings[i].memory, c.memory(service))
			}
		}
	}
	for i, who := range c.contenders {
		standings[i] = summary(who.name, standings[i].memory, samples[i])
	}
	return standings, nil
}

// count warms a contender up and finds how many operations fill a round.
func (c contest) count(ctx context.Context, who contender) (int, error) {
	switch {
	case who.timed:
		return 0, nil
	case c.pace.length == 0:
		return c.whole(c.pace.most), nil
	}
	n := c.whole(max(who.least, 2) * c.clients)
	for _, share := range []time.Duration{4, 1} {
		s, err := c.round(ctx, who, n)
		if err != nil {
			return 0, err
		}
		n = c.whole(max(int(s.Rate()*(c.pace.length/share).Seconds()), who.least*c.clients))
	}
	return n, nil
}

// whole makes n something that all connections share evenly, within bounds.
func (c contest) whole(n int) int {
	n = min(max(n, c.clients), c.pace.most)
	return max(n/c.clients, 1) * c.clients
}

func (c contest) round(ctx context.Context, who contender, n int) (load.Sample, error) {
	if err := c.settle(ctx); err != nil {
		return load.Sample{}, err
	}
	if who.prepare != nil {
		if err := who.prepare(ctx, n); err != nil {
			return load.Sample{}, fmt.Errorf("%s: preparing: %w", who.name, err)
		}
	}
	s, err := who.run(ctx, c.clients, n)
	if err != nil {
		return s, fmt.Errorf("%s: %w", who.name, err)
	}
	return s, who.check(ctx, s, n)
}

// check holds a sample against what was asked for and against what the database holds.
func (who contender) check(ctx context.Context, s load.Sample, n int) error {
	if who.timed && s.Count == 0 {
		return fmt.Errorf("%s: nothing was done in time", who.name)
	}
	if s.Count+s.Failed != n && !who.timed {
		return fmt.Errorf("%s: %d operations asked for, %d done", who.name, n, s.Count+s.Failed)
	}
	if s.Failed > 0 && !who.lenient {
		return fmt.Errorf("%s: %d of %d operations failed, the first with %s", who.name, s.Failed, n, s.Failure)
	}
	if who.stored == nil {
		return nil
	}
	rows, err := who.stored(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", who.name, err)
	}
	if rows != s.Count {
		return fmt.Errorf("%s: claims %d operations, but the database holds %d", who.name, s.Count, rows)
	}
	return nil
}

func summary(name string, memory int64, samples []load.Sample) standing {
	s := standing{name: name, memory: memory}
	s.rate = median(samples, load.Sample.Rate)
	s.p50 = median(samples, func(s load.Sample) time.Duration { return s.P50 })
	s.p99 = median(samples, func(s load.Sample) time.Duration { return s.P99 })
	for _, sample := range samples {
		s.failed += sample.Failed
		if s.failure == "" {
			s.failure = sample.Failure
		}
	}
	return s
}

func median[T float64 | time.Duration](samples []load.Sample, of func(load.Sample) T) T {
	values := make([]T, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
