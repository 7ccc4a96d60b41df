package main

import (
	"crypto/sha256"
	"encoding/json/v2"
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

// create stores the draft that asked led to and answers 201 with the whole run, so that the plugin has something to poll before
// anything else happens (seed: the row comes first, SQS after). A caller who sends an Idempotency-Key may ask again.
func (s *server) create(r *http.Request, caller web.Caller, draft lifecycle.Run, asked any) (*web.Reply, error) {
	key, err := web.IdempotencyKey(r)
	if err != nil {
		return nil, err
	}
	run, replayed, err := s.insert(r, caller, draft, asked, key)
	if err != nil {
		return nil, err
	}
	web.Note(r.Context(), "run", run.ID)
	header := resource.Header(run)
	header.Set("Location", web.RunPath(run))
	if replayed {
		header.Set("Idempotent-Replayed", "true")
	} else {
		s.told(run.Ref)
	}
	return &web.Reply{Status: http.StatusCreated, Header: header, Body: resource.Of(run, nil)}, nil
}

func (s *server) insert(r *http.Request, caller web.Caller, draft lifecycle.Run, asked any, key string) (lifecycle.Run, bool, error) {
	c := store.Creation{Run: draft, By: caller.Actor(), Traceparent: web.Traceparent(r.Context())}
	if key == "" {
		run, err := s.store.Create(r.Context(), c)
		return run, false, err
	}
	fingerprint, err := fingerprint(draft, asked)
	if err != nil {
		return lifecycle.Run{}, false, err
	}
	return s.store.CreateOnce(r.Context(), c, store.Key{Text: key, Fingerprint: fingerprint})
}

// fingerprint tells two requests apart by what they ask for, not by how it is written down.
func fingerprint(draft lifecycle.Run, asked any) ([]byte, error) {
	whole, err := json.Marshal([]any{draft.Kind, draft.ProjectID, asked})
	sum := sha256.Sum256(whole)
	return sum[:], err
}

// Lengths of texts, in code points as PostgreSQL counts them.
const (
	maxText   = 255  // varchar(255)
	maxPrompt = 8000 // text in the seed, bounded here
)
