package main

import (
	"context"
	"time"

	"framerun.dev/pkg/artifacts"
	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"framerun.dev/pkg/web"
)

type server struct {
	store  *store.Store
	people *auth.People
	watch  *watch
	links  links
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
	return r
}
