package main

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"framerun.dev/pkg/app"
	"framerun.dev/pkg/lifecycle"
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
		stream, wait := wantsStream(r), preferredWait(r)
		if stream || wait > 0 {
			// net/http notices that a client has gone only when its body has been read, and a GET may have one.
			_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, web.ClientBody))
		}
		if stream {
			return s.stream(r, ref, tenant)
		}
		seen := web.NewestSeen(r, ref.ID)
		v, err := s.hot.show(r.Context(), ref, tenant, seen)
		if err == nil && wait > 0 && web.Unchanged(r, v.etag) {
			v, err = s.await(r, v, seen, wait)
		}
		if err != nil {
			return nil, err
		}
		return s.answer(r, v, wait)
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

// await holds a caller that has seen v until there is another version, the caller will not wait any longer, or the service shuts down.
func (s *server) await(r *http.Request, v *view, seen time.Time, wait time.Duration) (*view, error) {
	w := s.hot.wait(v.run.Ref, v.run.Tenant, false)
	defer w.leave()
	over := time.NewTimer(wait)
	defer over.Stop()
	for held := true; ; {
		v, err := s.hot.show(r.Context(), v.run.Ref, v.run.Tenant, seen)
		if err != nil || !held || !web.Unchanged(r, v.etag) {
			return v, err
		}
		select {
		case <-w.news:
		case <-over.C:
			held = false
		case <-app.Draining(r.Context()):
			return v, nil
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

func (s *server) answer(r *http.Request, v *view, waited time.Duration) (*web.Reply, error) {
	reply := &web.Reply{Header: v.header}
	if waited > 0 {
		reply.Header = v.header.Clone()
		reply.Header.Set("Preference-Applied", "wait="+strconv.Itoa(int(waited.Seconds())))
	}
	if web.Unchanged(r, v.etag) {
		reply.Status = http.StatusNotModified
		return reply, nil
	}
	body, err := v.body(s.progress.on(v.run))
	reply.Body = body
	return reply, err
}
