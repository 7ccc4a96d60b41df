package main

import (
	"net/http"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/web"
)

// confirmBody is the designer's word on what the worker parsed.
type confirmBody struct {
	Decision *string `json:"decision"` // confirm or reject
	Attempt  *int64  `json:"attempt"`  // the attempt that the designer looked at
}

// confirm moves a run that awaits the designer on to assembling, or ends it as rejected. The attempt is part of the decision: what
// was shown is what is decided about (seed: CAS on phase and attempt).
func (s *server) confirm(r *http.Request) (*web.Reply, error) {
	caller, run, err := s.admit(r, lifecycle.WF2Des)
	if err != nil {
		return nil, err
	}
	body, err := web.Body[confirmBody](r, web.ClientBody)
	if err != nil {
		return nil, err
	}
	var f web.Fields
	decision := web.Word(&f, "/decision", body.Decision, "", lifecycle.Confirm, lifecycle.Reject)
	attempt := f.Number("/attempt", body.Attempt, 1, 1<<31-1)
	if err := f.Err(); err != nil {
		return nil, err
	}
	return s.apply(r, caller, lifecycle.Command{Verb: decision, Run: run, Attempt: int(attempt)})
}
