package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/singleflight"

	"framerun.dev/pkg/artifacts"
	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/events"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"framerun.dev/pkg/web"
)

type server struct {
	store     *store.Store
	people    *auth.People
	hot       *hot
	progress  *progress
	timelines singleflight.Group // reads of timelines for streams, by version
	links     links
}

func newServer(store *store.Store, people *auth.People, links links) *server {
	return &server{store: store, people: people, hot: newHot(store), progress: newProgress(), links: links}
}

// listen lets the bus hint and tell.
func (s *server) listen(bus *events.Bus) error {
	return errors.Join(bus.HearChanged(s.hot.hint), bus.HearProgress(s.heard))
}

func (s *server) heard(run lifecycle.Ref, p events.Progress) {
	if s.progress.heard(run, p) {
		s.hot.progressed(run)
	}
}

// links makes the link by which a result is fetched.
type links interface {
	To(ctx context.Context, key string, now time.Time) (artifacts.Link, error)
}

func (s *server) routes() *web.Router {
	r := web.NewRouter()
	for _, kind := range lifecycle.Kinds {
		all := "/v1/projects/{projectId}/" + string(kind)
		r.Handle("GET", all, s.list(kind))
		r.Handle("GET", all+"/{id}", s.one(kind))
		r.Handle("GET", all+"/{id}/timeline", s.timeline(kind))
		r.Handle("GET", all+"/{id}/result", s.result(kind))
	}
	elsewhere(r)
	return r
}

// elsewhere names the public routes of intake and interaction: the gateway sends here whatever is no route at all, and Allow must be
// true for the whole path.
func elsewhere(r *web.Router) {
	const wf2des, code2wf = "/v1/projects/{projectId}/wf2des", "/v1/projects/{projectId}/code2wf"
	for _, path := range []string{wf2des, code2wf, wf2des + "/{id}/confirm", wf2des + "/{id}/cancel", wf2des + "/{id}/feedback",
		wf2des + "/{id}/placement", code2wf + "/{id}/placement"} {
		r.Elsewhere("POST", path)
	}
	r.Elsewhere("DELETE", wf2des+"/{id}")
	r.Elsewhere("DELETE", code2wf+"/{id}")
}
