package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Ports, counted from the base like those of the stack, which uses those below 24 and is given a database instead of starting one.
const (
	postgresPort = 29
	barePort     = 30
)

// config is where everything is and how much is measured.
type config struct {
	bin, routes string
	portBase    int
	log         io.Writer // progress
	out         io.Writer // the tables
	pace        pace
	patience    time.Duration // for the relays, between rounds
	history     int64         // rows before the first contest
	clients     []int         // connections, for the contests of a whole table
	sizes       []int64       // of growth
	waiters     []int
}

// bench is a measuring under way.
type bench struct {
	config
	house  *house
	report report
}

// measure opens the house, lets measure what is wished and closes it again.
func measure(ctx context.Context, c config, wish func(context.Context, *bench) error) (err error) {
	h, err := openHouse(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	facts, err := h.circumstances(ctx)
	if err != nil {
		return err
	}
	b := &bench{config: c, house: h, report: report{c.out}}
	b.report.say("%s", facts)
	return wish(ctx, b)
}

// withHistory lets measure on databases that hold a history, one for the suite and one for what is compared.
func withHistory(parts ...func(context.Context, *bench) error) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		if err := b.house.found(ctx, "suite", b.history); err != nil {
			return err
		}
		if err := b.house.copy(ctx, "suite", "beside"); err != nil {
			return err
		}
		var errs []error
		for _, part := range parts {
			if ctx.Err() == nil { // what goes wrong in one part is no reason to know less of the others
				errs = append(errs, part(ctx, b))
			}
		}
		return errors.Join(errs...)
	}
}

// within runs a fresh suite around something.
func (b *bench) within(ctx context.Context, database, beside string, do func(*suite) error) (err error) {
	s, err := b.house.start(ctx, database, beside)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	err = do(s)
	if s.dropped > 0 {
		b.report.say("\nThe relays were slower than what was written: %d outbox entries were dropped between the rounds.", s.dropped)
	}
	return err
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.log, format+"\n", args...) }

func (b *bench) hold(ctx context.Context, s *suite, clients int, p pace, sides ...contender) ([]standing, error) {
	c := contest{contenders: sides, clients: clients, pace: p, settle: s.settled, memory: s.memory}
	standings, err := c.hold(ctx)
	for _, it := range standings {
		b.say("  c=%d %s: %s/s, p50 %s ms, p99 %s ms%s %s", clients, it.name, rate(it.rate), millis(it.p50), millis(it.p99), failures(it), it.failure)
	}
	return standings, err
}

// table measures one operation with each number of connections, on a fresh suite. A contest that ends with an error is told of in its
// place, and the next one is held.
func (b *bench) table(ctx context.Context, t table) error {
	b.say("%s", t.title)
	return b.within(ctx, "suite", "beside", func(s *suite) error {
		b.report.title(t.title)
		b.report.contests("c")
		var errs []error
		for _, clients := range b.clients {
			standings, err := b.contest(ctx, s, t, clients)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				b.report.row(fmt.Sprint(clients), "not measured: "+err.Error(), "", "", "", "", "", "", "", "")
				errs = append(errs, fmt.Errorf("%s, c=%d: %w", t.title, clients, err))
				continue
			}
			b.report.contest(fmt.Sprint(clients), standings)
		}
		return errors.Join(errs...)
	})
}

func (b *bench) contest(ctx context.Context, s *suite, t table, clients int) ([]standing, error) {
	sides, err := t.sides(ctx, s, clients)
	if err != nil {
		return nil, err
	}
	return b.hold(ctx, s, clients, b.pace, sides...)
}

// tables measures one after the other.
func (b *bench) tables(ctx context.Context, all []table) error {
	var errs []error
	for _, t := range all {
		if ctx.Err() == nil {
			errs = append(errs, b.table(ctx, t))
		}
	}
	return errors.Join(errs...)
}

// writing is the writing part: everything that changes rows, and the relay.
func writing(ctx context.Context, b *bench) error {
	river, err := b.house.startRiver(ctx, "beside")
	if err != nil {
		return err
	}
	defer river.close()
	return errors.Join(b.tables(ctx, writingTables(river)), b.relaying(ctx))
}

// relaying measures the relays alone.
func (b *bench) relaying(ctx context.Context) error {
	return b.within(ctx, "suite", "beside", func(s *suite) error {
		b.report.title("The relays alone: what waits in the outbox, a job and an event for each run, to SQS and the feed; runs a second")
		b.report.contests("")
		p := b.pace
		p.most = min(p.most, 20_000)
		standings, err := b.hold(ctx, s, 1, p, s.relay())
		if err == nil {
			b.report.contest("one intake", standings)
		}
		return err
	})
}

// reading is the reading part: GET in its three temperatures, lists, waiting.
func reading(ctx context.Context, b *bench) error {
	return errors.Join(b.tables(ctx, readingTables(b.history)), b.waiting(ctx))
}

func (b *bench) waiting(ctx context.Context) error {
	b.report.waiting()
	for _, count := range b.waiters {
		b.say("%d waiting", count)
		if err := b.within(ctx, "suite", "beside", func(s *suite) error {
			w, err := s.waiting(ctx, count)
			if err == nil {
				b.report.waited(w)
				b.say("  %s %s", w.together.Failure, w.apart.Failure)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
