package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"framerun.dev/pkg/lifecycle"
)

// look is how long stranded runs wait at most when no hint comes.
const look = time.Second

// failStranded ends runs whose job can never reach a worker, so that nobody waits for what will not come. It goes through the same
// step as the webhook, fenced by the job's attempt and the state that waits for it. It runs until ctx ends.
func (s *server) failStranded(ctx context.Context, wake <-chan struct{}, log *slog.Logger) error {
	for {
		if err := s.failStrandedOnce(ctx); err != nil && ctx.Err() == nil {
			log.Warn("stranded runs could not be failed, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-time.After(look):
		}
	}
}

func (s *server) failStrandedOnce(ctx context.Context) error {
	stranded, err := s.store.StrandedJobs(ctx, 100)
	if err != nil {
		return err
	}
	var errs []error
	for _, job := range stranded {
		_, err := s.step(ctx, lifecycle.Command{
			Verb: lifecycle.Fail, Run: job.Run, Attempt: job.Attempt, By: s.account, Message: sentences["undeliverable"],
			If: &lifecycle.Guard{State: job.State},
		})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
