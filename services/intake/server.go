package main

import (
	"net/http"
	"time"

	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/resource"
	"framerun.dev/pkg/store"
	"framerun.dev/pkg/web"
)

type server struct {
	store  *store.Store
	people *auth.People
	limits *web.Limiter        // of new runs, for each caller
	told   func(lifecycle.Ref) // a run was stored and its job waits
}

func (s *server) routes() *web.Router {
	r := web.NewRouter()
	r.Handle("POST", "/v1/projects/{projectId}/wf2des", s.createWF2Des)
	r.Handle("POST", "/v1/projects/{projectId}/code2wf", s.createCode2WF)
	return r
}

// admit tells who asks for a new run, and refuses who asks too often.
func (s *server) admit(r *http.Request) (web.Caller, error) {
	caller, err := web.Admit(r, s.people)
	if err != nil {
		return caller, err
	}
	return caller, s.limits.Take(caller.Subject, time.Now())
}

// create stores the draft and answers 201 with the whole run, so that the plugin has something to poll before anything else
// happens (seed: the row comes first, SQS after).
func (s *server) create(r *http.Request, caller web.Caller, draft lifecycle.Run) (*web.Reply, error) {
	run, err := s.store.Create(r.Context(), store.Creation{Run: draft, By: caller.Actor(), Traceparent: web.Traceparent(r.Context())})
	if err != nil {
		return nil, err
	}
	s.told(run.Ref)
	web.Note(r.Context(), "run", run.ID)
	header := resource.Header(run)
	header.Set("Location", web.RunPath(run))
	return &web.Reply{Status: http.StatusCreated, Header: header, Body: resource.Of(run, nil)}, nil
}

// Lengths of texts, in code points as PostgreSQL counts them.
const (
	maxText   = 255  // varchar(255)
	maxPrompt = 8000 // text in the seed, bounded here
)
