package main

import (
	"context"
	"fmt"

	"framerun.dev/deploy/bench/rows"
	"framerun.dev/pkg/lifecycle"
)

// growing is what is measured again and again while the tables grow.
type growing struct {
	name   string
	once   bool // no row of the history may come twice: its second reading would be another thing
	sides  func(s *suite, history int64) []contender
	passed [][]standing // by size
}

func growths() []*growing {
	return []*growing{
		{name: "create wf2des", sides: func(s *suite, _ int64) []contender { return []contender{s.create(lifecycle.WF2Des)} }},
		{name: "webhook, completed", sides: func(s *suite, _ int64) []contender { return []contender{s.complete()} }},
		{name: "GET from PostgreSQL", once: true, sides: (*suite).cold},
		{name: "list, newest 50", sides: func(s *suite, _ int64) []contender { return s.list(newest50) }},
		{name: "list, unplaced of a file", sides: func(s *suite, _ int64) []contender { return s.list(inbox50) }},
	}
}

// growth measures the same operations at each of the sizes, in a database of its own that grows in between.
func growth(ctx context.Context, b *bench) error {
	const database, clients = "growth", 64
	sizes := b.sizes
	if err := b.house.found(ctx, database, sizes[0]); err != nil {
		return err
	}
	if err := b.house.copy(ctx, database, "growth_beside"); err != nil {
		return err
	}
	all := growths()
	for i, size := range sizes {
		if err := b.within(ctx, database, "growth_beside", func(s *suite) error {
			if i > 0 {
				if err := rows.History(ctx, s.db, sizes[i-1]+1, size); err != nil {
					return err
				}
			}
			for _, g := range all {
				p := b.pace
				if g.once {
					p.most = min(p.most, int(sizes[0])/2/(p.rounds+2)) // two rounds warm up
				}
				standings, err := b.hold(ctx, s, clients, p, g.sides(s, size)...)
				if err != nil {
					return fmt.Errorf("at %d rows: %s: %w", size, g.name, err)
				}
				g.passed = append(g.passed, standings)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	b.report.growth(sizes, clients, all)
	return nil
}

func (r report) growth(sizes []int64, clients int, all []*growing) {
	r.title(fmt.Sprintf("Growth: the same at c=%d while wf2des and its timeline grow", clients))
	head := []string{"a second (p99 ms)"}
	for _, size := range sizes {
		head = append(head, fmt.Sprintf("%s rows", rate(float64(size))))
	}
	r.head(append(head, "last ÷ first", "last ÷ the one before")...)
	for _, g := range all {
		for side := range g.passed[0] {
			cells := []string{g.name + ": " + g.passed[0][side].name}
			for _, at := range g.passed {
				cells = append(cells, fmt.Sprintf("%s (%s)%s", rate(at[side].rate), millis(at[side].p99), failures(at[side])))
			}
			last := len(sizes) - 1
			first, before, now := g.passed[0][side], g.passed[max(last-1, 0)][side], g.passed[last][side]
			r.row(append(cells, ratio(now.rate, first.rate), ratio(now.rate, before.rate))...)
		}
	}
}
