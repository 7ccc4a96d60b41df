package main

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"framerun.dev/pkg/app"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/resource"
	"framerun.dev/pkg/web"
)

// one answers GET of a run: 200 with its ETag, or 304 when the caller has seen this version. With Prefer: wait=N it holds the
// answer until there is another version; with Accept: text/event-stream it keeps telling.
func (s *server) one(kind lifecycle.Kind) web.Handler {
	return func(r *http.Request) (*web.Reply, error) {
		ref, tenant, err := s.target(r, kind)
		if err != nil {
			return nil, err
		}
		read := func(ctx context.Context) (lifecycle.Run, error) { return s.store.Run(ctx, ref, tenant) }
		stream, wait := wantsStream(r), preferredWait(r)
		if stream || wait > 0 {
			// net/http notices that a client has gone only when its body has been read, and a GET may have one.
			_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, web.ClientBody))
		}
		if stream {
			return s.stream(r, ref, read)
		}
		run, err := s.await(r, ref, read, wait)
		if err != nil {
			return nil, err
		}
		return s.show(r, run, wait), nil
	}
}

// target names the run that a request without a query string speaks of, and the fence within which it may be looked for.
func (s *server) target(r *http.Request, kind lifecycle.Kind) (lifecycle.Ref, lifecycle.Tenant, error) {
	caller, err := web.Admit(r, s.people)
	if err != nil {
		return lifecycle.Ref{}, caller.Tenant, err
	}
	if _, err := web.Query(r); err != nil {
		return lifecycle.Ref{}, caller.Tenant, err
	}
	ref, err := web.Target(r, kind)
	return ref, caller.Tenant, err
}

// visible reads the run that a request speaks of, if its caller may see it.
func (s *server) visible(r *http.Request, kind lifecycle.Kind) (lifecycle.Run, error) {
	ref, tenant, err := s.target(r, kind)
	if err != nil {
		return lifecycle.Run{}, err
	}
	return s.store.Run(r.Context(), ref, tenant)
}

// reader reads the run that a request speaks of, within its caller's tenant.
type reader func(context.Context) (lifecycle.Run, error)

// await reads the run, and while the caller has seen this version and is willing to wait, reads it again when it is told that
// something changed, and every look without being told. Shutdown ends the waiting early.
func (s *server) await(r *http.Request, ref lifecycle.Ref, read reader, wait time.Duration) (lifecycle.Run, error) {
	changed, forget := s.watch.changes(ref)
	defer forget()
	over := time.After(wait)
	for {
		run, err := read(r.Context())
		if err != nil || wait == 0 || !web.Unchanged(r, web.ETag(run.ID, run.UpdatedAt)) {
			return run, err
		}
		select {
		case <-changed:
		case <-time.After(look):
		case <-over:
			return run, nil
		case <-app.Draining(r.Context()):
			return run, nil
		case <-r.Context().Done():
			return run, r.Context().Err()
		}
	}
}

func (s *server) show(r *http.Request, run lifecycle.Run, waited time.Duration) *web.Reply {
	reply := &web.Reply{Header: resource.Header(run)}
	reply.Header.Set("Vary", "Accept, Prefer")
	if waited > 0 {
		reply.Header.Set("Preference-Applied", "wait="+strconv.Itoa(int(waited.Seconds())))
	}
	if web.Unchanged(r, web.ETag(run.ID, run.UpdatedAt)) {
		reply.Status = http.StatusNotModified
		return reply
	}
	reply.Body = resource.Of(run, s.watch.progress(run))
	return reply
}
