package main

import (
	"context"
	"log/slog"
	"time"
)

const (
	keysEvery = 10 * time.Minute // between two rounds of clearing away
	keysMost  = 1000             // cleared away by one statement
)

// forgetKeys clears away Idempotency-Keys that are past their day, until ctx ends.
func (s *server) forgetKeys(log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		for {
			n, err := s.store.ForgetKeys(ctx, keysMost)
			if err != nil && ctx.Err() == nil {
				log.Warn("old Idempotency-Keys could not be cleared away, trying again", "error", err)
			}
			if n == keysMost {
				continue
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(keysEvery):
			}
		}
	}
}
