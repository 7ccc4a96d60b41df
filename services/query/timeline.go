package main

import (
	"net/http"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/web"
)

// line is one line of a timeline: who did what when, and what became of it. A worker's word that came too late is there too, with
// its outcome; it changed nothing.
type line struct {
	Seq            int                       `json:"seq"`
	What           lifecycle.What            `json:"what"`
	Outcome        lifecycle.Outcome         `json:"outcome"`
	By             lifecycle.Voice           `json:"by"`
	Actor          string                    `json:"actor"`
	From           *lifecycle.State          `json:"from"` // null for created
	To             lifecycle.State           `json:"to"`
	Attempt        int                       `json:"attempt"`
	At             string                    `json:"at"`
	ResultURL      *string                   `json:"resultUrl,omitzero"`
	ErrorMessage   *string                   `json:"errorMessage,omitzero"`
	FlagCount      *int                      `json:"flagCount,omitzero"`
	Score          *float64                  `json:"score,omitzero"`
	ScoreVersion   *string                   `json:"scoreVersion,omitzero"`
	FeedbackStatus *lifecycle.FeedbackStatus `json:"feedbackStatus,omitzero"`
}

// timeline answers with what happened to a run, oldest first.
func (s *server) timeline(kind lifecycle.Kind) web.Handler {
	return func(r *http.Request) (*web.Reply, error) {
		run, err := s.visible(r, kind)
		if err != nil {
			return nil, err
		}
		events, err := s.store.Timeline(r.Context(), run.Ref)
		if err != nil {
			return nil, err
		}
		items := make([]line, len(events))
		for i, e := range events {
			items[i] = lineOf(e)
		}
		return &web.Reply{Body: map[string]any{"items": items}}, nil
	}
}

func lineOf(e lifecycle.Event) line {
	out := line{
		Seq: e.Seq, What: e.What, Outcome: e.Outcome, By: e.By.Voice, Actor: e.By.Name, To: e.To, Attempt: e.Attempt,
		At: web.Timestamp(e.At), ResultURL: e.Data.ResultURL, ErrorMessage: e.Data.ErrorMessage,
		FlagCount: e.Data.FlagCount, ScoreVersion: e.Data.ScoreVersion, FeedbackStatus: e.Data.Feedback,
	}
	if e.From != lifecycle.None {
		out.From = &e.From
	}
	if e.Data.Score != nil {
		out.Score = new(e.Data.Score.Float())
	}
	return out
}
