package main

import (
	"net/http"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/web"
)

// feedbackBody is what the designer made of the result.
type feedbackBody struct {
	FeedbackStatus *string `json:"feedbackStatus"` // fixed or adopted
}

// feedback notes what became of a completed run's result. Book-keeping only: the last word stands (seed).
func (s *server) feedback(r *http.Request) (*web.Reply, error) {
	caller, run, err := s.admit(r, lifecycle.WF2Des)
	if err != nil {
		return nil, err
	}
	body, err := web.Body[feedbackBody](r, web.ClientBody)
	if err != nil {
		return nil, err
	}
	var f web.Fields
	status := web.Word(&f, "/feedbackStatus", body.FeedbackStatus, "", lifecycle.Fixed, lifecycle.Adopted)
	if err := f.Err(); err != nil {
		return nil, err
	}
	return s.apply(r, caller, lifecycle.Command{Verb: lifecycle.Rate, Run: run, Feedback: status})
}
