package worker

import (
	"context"
	"errors"
	"fmt"

	"framerun.dev/pkg/resultdoc"
)

// What the scripted worker makes of every screen.
const (
	score        = 0.9133
	scoreVersion = "ds@1.0"
)

// flags is how many places of the screen the worker is not sure of.
func (t task) flags() int { return len(t.job.ScreenID) % 3 }

// document leaves what was parsed in the run's result document, before the suite is told of it: the designer's decision is written into
// it. Where there is no document store, nothing is left.
func (t task) document(ctx context.Context) error {
	if t.worker.Documents == nil {
		return nil
	}
	err := t.worker.Documents.Write(ctx, resultdoc.Document{
		RunID: t.id(), Attempt: t.job.Attempt, Request: resultdoc.Request{PlacementTarget: t.job.PlacementTarget},
		Parse:      resultdoc.Parse{Components: []string{"Header", "List", "Button"}},
		Confidence: &resultdoc.Confidence{FlagCount: t.flags()}, Score: new(score), ScoreVersion: new(scoreVersion),
	})
	if errors.Is(err, resultdoc.ErrSuperseded) {
		return errUnwanted
	}
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}
