package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"framerun.dev/pkg/app"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

const (
	retentionEvery = 10 * time.Minute // between two rounds
	retentionMost  = 200              // runs, or entries, that one statement lets go
)

// readRetention reads RETENTION: for how long what is kept about a run stays after the run has ended or was deleted. 0, the default,
// is for ever. A day is the least: for so long an Idempotency-Key leads to its run.
func readRetention(e *app.Env) time.Duration {
	keep := e.Duration("RETENTION", 0)
	if keep != 0 && keep < 24*time.Hour {
		e.Refuse("RETENTION", "must be 0 (keep everything) or at least 24h")
	}
	return keep
}

// letGo lets go of the timelines and settled outbox entries of runs that have been at their end for longer than keep, until ctx ends.
// Any number of processes may do it at once.
func (s *server) letGo(keep time.Duration, log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		for {
			gone, err := s.letGoOnce(ctx, keep)
			if err != nil && ctx.Err() == nil {
				log.Warn("old timelines could not be let go, trying again", "error", err)
			}
			if gone != (store.LetGo{}) {
				log.Info("let go of what was kept about runs that are long at their end", "lines", gone.Lines, "entries", gone.Entries)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(retentionEvery):
			}
		}
	}
}

// letGoOnce goes through everything once, a bounded batch at a time.
func (s *server) letGoOnce(ctx context.Context, keep time.Duration) (all store.LetGo, err error) {
	for n := retentionMost; n == retentionMost && err == nil; {
		n, err = s.store.LetGoSkipped(ctx, keep, retentionMost)
		all.Entries += n
	}
	for _, kind := range lifecycle.Kinds {
		err = errors.Join(err, s.letGoOf(ctx, kind, keep, &all))
	}
	return all, err
}

func (s *server) letGoOf(ctx context.Context, kind lifecycle.Kind, keep time.Duration, all *store.LetGo) error {
	for more := true; more; {
		gone, err := s.store.LetGoDeleted(ctx, kind, keep, retentionMost)
		if err != nil {
			return err
		}
		all.Lines, all.Entries = all.Lines+gone.Lines, all.Entries+gone.Entries
		more = gone.Lines > 0
	}
	for after, more := "", true; more; {
		last, gone, err := s.store.LetGoEnded(ctx, kind, keep, after, retentionMost)
		if err != nil {
			return err
		}
		all.Lines, all.Entries = all.Lines+gone.Lines, all.Entries+gone.Entries
		after, more = last, last != ""
	}
	return nil
}
