package store

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"time"

	"framerun.dev/pkg/lifecycle"
)

// line is a row of run_event, which holds words, not digits: it is ours, not the seed's.
type line struct {
	Kind        lifecycle.Kind    `db:"kind"`
	RunID       string            `db:"run_id"`
	Seq         int               `db:"seq"`
	What        lifecycle.What    `db:"what"`
	Outcome     lifecycle.Outcome `db:"outcome"`
	ActorKind   lifecycle.Voice   `db:"actor_kind"`
	Actor       string            `db:"actor"`
	FromState   *string           `db:"from_state"`
	ToState     lifecycle.State   `db:"to_state"`
	Attempt     int               `db:"attempt"`
	Version     time.Time         `db:"version"`
	At          time.Time         `db:"at"`
	Data        []byte            `db:"data"`
	Traceparent *string           `db:"traceparent"`
}

const lineColumns = `run_event.kind, run_event.run_id, run_event.seq, what, outcome, actor_kind, actor, from_state, to_state,
	run_event.attempt, version, at, data, run_event.traceparent`

// Timeline reads what happened to a run, oldest first. Whether the caller may see the run is asked before, with Run.
func (s *Store) Timeline(ctx context.Context, ref lifecycle.Ref) ([]lifecycle.Event, error) {
	var lines []line
	err := s.many(ctx, &lines, `SELECT `+lineColumns+` FROM run_event WHERE kind = $1 AND run_id = $2 ORDER BY seq`, ref.Kind, ref.ID)
	if err != nil {
		return nil, failed(ctx, "read a timeline", err)
	}
	events := make([]lifecycle.Event, len(lines))
	for i, l := range lines {
		if events[i], err = l.event(); err != nil {
			return nil, err
		}
	}
	return events, nil
}

func (l line) event() (lifecycle.Event, error) {
	var d data
	if err := json.Unmarshal(l.Data, &d); err != nil {
		return lifecycle.Event{}, fmt.Errorf("store: event %d of run %s: %w", l.Seq, l.RunID, err)
	}
	return lifecycle.Event{
		Run: lifecycle.Ref{Kind: l.Kind, ID: l.RunID}, Seq: l.Seq, What: l.What, Outcome: l.Outcome,
		By:   lifecycle.Actor{Voice: l.ActorKind, Name: l.Actor},
		From: lifecycle.State(text(l.FromState)), To: l.ToState, Attempt: l.Attempt, Version: l.Version.UTC(), At: l.At.UTC(),
		Data: lifecycle.EventData(d), Traceparent: text(l.Traceparent),
	}, nil
}

// data is lifecycle.EventData as it is kept in run_event.data. Scores are kept in ten-thousandths, exactly.
type data struct {
	ResultURL    *string                   `json:"result_url,omitzero"`
	ErrorMessage *string                   `json:"error_message,omitzero"`
	FlagCount    *int                      `json:"flag_count,omitzero"`
	Score        *lifecycle.Score          `json:"score_e4,omitzero"`
	ScoreVersion *string                   `json:"score_version,omitzero"`
	Feedback     *lifecycle.FeedbackStatus `json:"feedback_status,omitzero"`
	Delivery     *string                   `json:"delivery,omitzero"`
}
