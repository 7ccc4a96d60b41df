package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
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
	limits *web.Limiter // of new runs, for each caller
}

func (s *server) routes() *web.Router {
	r := web.NewRouter()
	r.Handle("POST", "/v1/projects/{projectId}/wf2des", create[wf2desBody](s))
	r.Handle("POST", "/v1/projects/{projectId}/code2wf", create[code2wfBody](s))
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

// create answers 201 with the whole run, so that the plugin has something to poll before anything else happens (seed: the row comes
// first, SQS after). A caller who sends an Idempotency-Key may ask again.
func create[B interface {
	draft(caller web.Caller) (lifecycle.Run, error)
}](s *server) web.Handler {
	return func(r *http.Request) (*web.Reply, error) {
		caller, err := s.admit(r)
		if err != nil {
			return nil, err
		}
		key, err := web.IdempotencyKey(r)
		if err != nil {
			return nil, err
		}
		body, err := web.Body[B](r, web.ClientBody)
		if err != nil {
			return nil, err
		}
		draft, err := body.draft(caller)
		if err != nil {
			return nil, err
		}
		return s.create(r, store.Creation{Run: draft, By: caller.Actor(), Traceparent: web.Traceparent(r.Context())}, key)
	}
}

func (s *server) create(r *http.Request, c store.Creation, key string) (reply *web.Reply, err error) {
	run, replayed := lifecycle.Run{}, false
	if key == "" {
		run, err = s.store.Create(r.Context(), c)
	} else {
		run, replayed, err = s.store.CreateOnce(r.Context(), c, store.Key{Text: key, Fingerprint: fingerprint(c.Run)})
	}
	if err != nil {
		return nil, err
	}
	web.Note(r.Context(), "run", run.ID)
	header := resource.Header(run)
	header.Set("Location", web.RunPath(run))
	if replayed {
		header.Set("Idempotent-Replayed", "true")
	}
	return &web.Reply{Status: http.StatusCreated, Header: header, Body: resource.Of(run, nil)}, nil
}

// fingerprint tells two requests apart by what they ask for, not by how it is written down.
func fingerprint(draft lifecycle.Run) []byte {
	text := func(s *string) string {
		if s == nil {
			return "-"
		}
		return strconv.Quote(*s)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %q %q %q %s %s %t %q %s", draft.Kind, draft.ProjectID, draft.FigmaFileKey, draft.WFNodeID,
		draft.ScreenID, draft.Edge, text(draft.Prompt), draft.AutoConfirm, draft.PageImportID, text(draft.PlacementTarget)))
	return sum[:]
}

// Lengths of texts, in code points as PostgreSQL counts them.
const (
	maxText   = 255  // varchar(255)
	maxPrompt = 8000 // text in the seed, bounded here
)
