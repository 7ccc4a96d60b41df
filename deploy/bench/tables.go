package main

import (
	"context"

	"framerun.dev/pkg/lifecycle"
)

// table is one operation, to be measured with several numbers of connections. The suite's own side comes first.
type table struct {
	title string
	sides func(ctx context.Context, s *suite, clients int) ([]contender, error)
}

// peerAt is the number of connections at which the peer is asked as well.
const peerAt = 64

func writingTables(river *peer) []table {
	return []table{
		{"Create a wf2des run: POST, fresh nodes", func(ctx context.Context, s *suite, clients int) ([]contender, error) {
			all := s.against(s.create(lifecycle.WF2Des), creating(lifecycle.WF2Des)...)
			if clients != peerAt {
				return all, nil
			}
			alone, err := s.without(ctx, func(s *suite) contender { return s.create(lifecycle.WF2Des) })
			return append(all, river.insertRun(s), river.insertTx(), river.insertMany(), alone), err
		}},
		{"Create a code2wf run: POST", func(_ context.Context, s *suite, _ int) ([]contender, error) {
			return s.against(s.create(lifecycle.Code2WF), creating(lifecycle.Code2WF)...), nil
		}},
		{"Complete a run: the worker's signed webhook", func(ctx context.Context, s *suite, clients int) ([]contender, error) {
			all := s.against(s.complete(), completing()...)
			if clients != peerAt {
				return all, nil
			}
			alone, err := s.without(ctx, (*suite).complete)
			return append(all, alone), err
		}},
		{"Confirm a run", func(_ context.Context, s *suite, _ int) ([]contender, error) {
			return s.against(s.confirm(), confirming()...), nil
		}},
	}
}

// readingTables are over a history of so many rows.
func readingTables(history int64) []table {
	return []table{
		{"GET a run that many poll", func(ctx context.Context, s *suite, _ int) ([]contender, error) { return s.hot(ctx, false) }},
		{"GET a run that has not changed: 304", func(ctx context.Context, s *suite, _ int) ([]contender, error) { return s.hot(ctx, true) }},
		{"GET from PostgreSQL: another run each time", func(_ context.Context, s *suite, _ int) ([]contender, error) {
			return s.cold(history), nil
		}},
		{"List of 50, the project's newest", func(_ context.Context, s *suite, _ int) ([]contender, error) { return s.list(newest50), nil }},
		{"List of 50, a file's unplaced runs", func(_ context.Context, s *suite, _ int) ([]contender, error) { return s.list(inbox50), nil }},
	}
}
