package main

import (
	"net/http"

	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/resource"
	"framerun.dev/pkg/store"
	"framerun.dev/pkg/web"
)

type server struct {
	store  *store.Store
	people *auth.People
	told   func(lifecycle.Ref) // a run has changed, and a job of it may wait
}

func (s *server) routes() *web.Router {
	r := web.NewRouter()
	const wf2des, code2wf = "/v1/projects/{projectId}/wf2des/{id}", "/v1/projects/{projectId}/code2wf/{id}"
	r.Handle("POST", wf2des+"/confirm", s.confirm)
	r.Handle("POST", wf2des+"/cancel", s.plain(lifecycle.WF2Des, lifecycle.Cancel))
	r.Handle("POST", wf2des+"/feedback", s.feedback)
	r.Handle("POST", wf2des+"/placement", s.plain(lifecycle.WF2Des, lifecycle.Place))
	r.Handle("DELETE", wf2des, s.plain(lifecycle.WF2Des, lifecycle.Delete))
	r.Handle("POST", code2wf+"/placement", s.plain(lifecycle.Code2WF, lifecycle.Place))
	r.Handle("DELETE", code2wf, s.plain(lifecycle.Code2WF, lifecycle.Delete))
	return r
}

// plain handles a verb that needs no words: the body is absent or {}.
func (s *server) plain(kind lifecycle.Kind, verb lifecycle.Verb) web.Handler {
	return func(r *http.Request) (*web.Reply, error) {
		caller, run, err := s.admit(r, kind)
		if err != nil {
			return nil, err
		}
		if err := web.EmptyBody(r); err != nil {
			return nil, err
		}
		return s.apply(r, caller, lifecycle.Command{Verb: verb, Run: run})
	}
}

// admit tells who asks, and which run of kind is spoken of.
func (s *server) admit(r *http.Request, kind lifecycle.Kind) (web.Caller, lifecycle.Ref, error) {
	caller, err := web.Admit(r, s.people)
	if err != nil {
		return caller, lifecycle.Ref{}, err
	}
	run, err := web.Target(r, kind)
	return caller, run, err
}

// apply carries a person's command out within the caller's tenant and answers with the run as it stands afterwards. The same
// decision made again is answered alike and changes nothing.
func (s *server) apply(r *http.Request, caller web.Caller, cmd lifecycle.Command) (*web.Reply, error) {
	cmd.Tenant, cmd.By, cmd.Traceparent = &caller.Tenant, caller.Actor(), web.Traceparent(r.Context())
	applied, err := s.store.Apply(r.Context(), cmd)
	if err != nil {
		return nil, err
	}
	if applied.Outcome == lifecycle.Applied {
		s.told(cmd.Run)
	}
	web.Note(r.Context(), "outcome", applied.Outcome)
	return resource.Reply(applied.Run), nil
}
