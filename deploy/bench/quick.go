package main

import (
	"context"
	"fmt"

	"framerun.dev/pkg/lifecycle"
)

// quick measures the ratios that an everyday change may move, on one suite.
func quick(ctx context.Context, b *bench) error {
	return b.within(ctx, "suite", "beside", func(s *suite) error {
		b.report.say("")
		b.report.contests("operation, c")
		hot, err := s.hot(ctx, false)
		if err != nil {
			return err
		}
		create := creating(lifecycle.WF2Des)
		for _, t := range []struct {
			name    string
			clients int
			sides   []contender
		}{
			{"create wf2des", 64, s.against(s.create(lifecycle.WF2Des), create[0], create[2])},
			{"create wf2des", 1, s.against(s.create(lifecycle.WF2Des), create[0])},
			{"webhook, completed", 64, s.against(s.complete(), completing()[0])},
			{"GET hot", 64, hot},
			{"GET from PostgreSQL", 64, s.cold(b.history)},
		} {
			standings, err := b.hold(ctx, s, t.clients, b.pace, t.sides...)
			if err != nil {
				return fmt.Errorf("%s, c=%d: %w", t.name, t.clients, err)
			}
			b.report.contest(fmt.Sprintf("%s, %d", t.name, t.clients), standings)
		}
		return nil
	})
}
