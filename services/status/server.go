package main

import (
	"net/http"

	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/events"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"framerun.dev/pkg/web"
)

type server struct {
	store    *store.Store
	webhooks *auth.Webhooks
	account  lifecycle.Actor // the service account in whose name workers' words are stored (seed: created_by and updated_by)
	nerve    nerve
	pulse    pulse

	documents documents // nil: switched off
}

// nerve is what of the event bus this service uses.
type nerve interface {
	TellChanged(run lifecycle.Ref)
	TellProgress(run lifecycle.Ref, p events.Progress)
}

func (s *server) routes() *web.Router {
	r := web.NewRouter()
	r.Handle("POST", "/v1/ai-status", s.aiStatus)
	return r
}

// aiStatus hears a worker. The signature is checked over the bytes as they came, before anything is read into them.
func (s *server) aiStatus(r *http.Request) (*web.Reply, error) {
	raw, err := web.RawBody(r, web.WorkerBody)
	if err != nil {
		return nil, err
	}
	if err := s.webhooks.Verify(r.Header, raw); err != nil {
		return nil, err
	}
	said, err := readWord(raw)
	if err != nil {
		return nil, err
	}
	web.Note(r.Context(), "run", said.run.ID)
	web.Note(r.Context(), "event", said.event)
	if said.event == progress {
		return s.hear(r, said)
	}
	return s.apply(r, said)
}
