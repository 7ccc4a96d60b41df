package main

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"net/http"
	"sync/atomic"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/resource"
	"framerun.dev/pkg/web"
)

// view is one version of a run, and what its readers are shown of it, made once for all of them. It never changes.
type view struct {
	run    lifecycle.Run
	etag   string
	header http.Header // of every answer that shows it; not to be written to

	rendered atomic.Pointer[rendered]
	past     atomic.Pointer[[]lifecycle.Event]
}

// rendered is a view's JSON with a worker's word.
type rendered struct {
	progress *resource.Progress
	body     jsontext.Value
}

func newView(run lifecycle.Run) *view {
	v := &view{run: run, etag: web.ETag(run.ID, run.UpdatedAt), header: resource.Header(run)}
	v.header.Set("Vary", "Accept, Prefer")
	return v
}

// bytes is about what a view takes up in memory; none where there is none.
func (v *view) bytes() int {
	if v == nil {
		return 0
	}
	const fixed, copies = 4 << 10, 3 // in the run, in the JSON, and in that with another word
	n := fixed + copies*(len(v.run.FigmaFileKey)+len(v.run.ScreenID)+len(v.run.WFNodeID))
	for _, text := range []*string{v.run.Prompt, v.run.ErrorMessage, v.run.ResultURL, v.run.PlacementTarget} {
		if text != nil {
			n += copies * len(*text)
		}
	}
	return n
}

// body is the run as JSON, with the worker's latest word.
func (v *view) body(progress *resource.Progress) (jsontext.Value, error) {
	if s := v.rendered.Load(); s != nil && s.progress == progress {
		return s.body, nil
	}
	body, err := json.Marshal(resource.Of(v.run, progress), json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	v.rendered.Store(&rendered{progress, body})
	return body, nil
}

// steps are what led to the view, from the timeline: what changed the run, and not the words that came too late. They are read at
// most once at a time, however many streams tell of them.
func (s *server) steps(ctx context.Context, v *view) ([]lifecycle.Event, error) {
	if past := v.past.Load(); past != nil {
		return *past, nil
	}
	read, err, _ := s.timelines.Do(v.etag, func() (any, error) {
		return s.store.Timeline(context.WithoutCancel(ctx), v.run.Ref)
	})
	if err != nil {
		return nil, err
	}
	var steps []lifecycle.Event
	for _, e := range read.([]lifecycle.Event) {
		if e.Outcome == lifecycle.Applied && !e.Version.After(v.run.UpdatedAt) {
			steps = append(steps, e)
		}
	}
	v.past.Store(&steps)
	return steps, nil
}
