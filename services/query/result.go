package main

import (
	"fmt"
	"net/http"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/web"
)

// resultLink is where the result of a run, or the artifact of its failure, can be fetched for a short while without a token.
type resultLink struct {
	URL       string `json:"url"`
	ExpiresAt string `json:"expiresAt"`
	Key       string `json:"key"`
}

// result answers with a fresh link, or 409 with the run's state when there is nothing to link to.
func (s *server) result(kind lifecycle.Kind) web.Handler {
	return func(r *http.Request) (*web.Reply, error) {
		run, err := s.visible(r, kind)
		if err != nil {
			return nil, err
		}
		if run.ResultURL == nil {
			return nil, &lifecycle.RefusedError{Code: lifecycle.StateConflict, Run: run,
				Reason: fmt.Sprintf("a run that is %s has no result", run.State)}
		}
		link, err := s.links.To(r.Context(), *run.ResultURL, time.Now())
		if err != nil {
			return nil, err
		}
		return &web.Reply{Body: resultLink{link.URL, web.Timestamp(link.ExpiresAt), *run.ResultURL}}, nil
	}
}
