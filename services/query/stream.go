package main

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"framerun.dev/pkg/app"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/resource"
	"framerun.dev/pkg/web"
)

const (
	heartbeat = 15 * time.Second // a comment now and then, so that nothing between takes the stream for dead
	patience  = 10 * time.Second // a reader that takes nothing for so long is let go
	longest   = 10 * time.Minute // who listens longer comes back with Last-Event-ID, and shows a token that is still good
)

// stream tells a run as Server-Sent Events until it has ended, the reader has gone or the service shuts down. A "run" event is the
// whole resource: one at the beginning, and one for each new version. Before that come "step" events, one for each line of the
// timeline that led there, as the timeline shows it. "progress" events in between are the worker's latest word.
//
// A step's id is its number in the timeline, with ".step" behind it; a run's is the number of its last step. So a reader that comes
// back with Last-Event-ID, to whichever replica, is told each step that it has missed, and none twice.
func (s *server) stream(r *http.Request, ref lifecycle.Ref, tenant lifecycle.Tenant) (*web.Reply, error) {
	now, err := s.tale(r.Context(), ref, tenant, web.NewestSeen(r, ref.ID))
	if err != nil {
		return nil, err
	}
	t := resume(r.Header.Get("Last-Event-ID"))
	if t.step > now.last() { // told by a replica that knows more
		s.hot.hint(ref)
		if now, err = s.tale(r.Context(), ref, tenant, time.Time{}); err != nil {
			return nil, err
		}
	}
	switch {
	case t.step > now.last(): // told by nobody
		t = resume("")
	case t.whole && t.step == now.last():
		t.version = now.run.UpdatedAt
	}
	header := http.Header{"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-store"}, "X-Accel-Buffering": {"no"}}
	if r.Method == http.MethodHead { // a stream without a body would only hold the connection
		return &web.Reply{Header: header}, nil
	}
	if now.run.Ended() && t.version.Equal(now.run.UpdatedAt) { // nothing will ever follow: an EventSource stops at 204
		return &web.Reply{Status: http.StatusNoContent}, nil
	}
	shown := now.run.UpdatedAt
	return &web.Reply{Header: header, Stream: func(w http.ResponseWriter, r *http.Request) error {
		t.w, t.out = w, http.NewResponseController(w)
		return s.tell(r, t, ref, tenant, shown)
	}}, nil
}

// tale is a run and how it came to be so.
type tale struct {
	*view
	steps []lifecycle.Event
}

// last is the number of the last step; 0 when the timeline has been let go.
func (t tale) last() int {
	if len(t.steps) == 0 {
		return 0
	}
	return t.steps[len(t.steps)-1].Seq
}

func (s *server) tale(ctx context.Context, ref lifecycle.Ref, tenant lifecycle.Tenant, seen time.Time) (tale, error) {
	v, err := s.hot.show(ctx, ref, tenant, seen)
	if err != nil {
		return tale{}, err
	}
	steps, err := s.steps(ctx, v)
	return tale{v, steps}, err
}

// tell goes on telling, of nothing older than shown.
func (s *server) tell(r *http.Request, t *teller, ref lifecycle.Ref, tenant lifecycle.Tenant, shown time.Time) error {
	w := s.hot.wait(ref, tenant, true)
	defer w.leave()
	over := time.NewTimer(longest)
	defer over.Stop()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		now, err := s.tale(r.Context(), ref, tenant, shown)
		if err != nil {
			return err
		}
		shown = now.run.UpdatedAt
		if err := t.show(now, s.progress.on(now.run)); err != nil || now.run.Ended() {
			return err
		}
		select {
		case <-w.news:
		case <-beat.C:
		case <-over.C:
			return nil
		case <-app.Draining(r.Context()):
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
}

// teller writes the events of one stream, and knows what its reader has been told.
type teller struct {
	w   http.ResponseWriter
	out *http.ResponseController

	step     int       // the last one; none: the reader comes for the first time
	whole    bool      // the run that it led to as well
	version  time.Time // of the run that was told last
	progress *resource.Progress
	last     time.Time
}

// none: who comes for the first time is shown how the run is, not how it came to be so.
const none = -1

// resume reads Last-Event-ID. What no stream has written is taken for nothing.
func resume(id string) *teller {
	digits, isStep := strings.CutSuffix(id, ".step")
	step, err := strconv.Atoi(digits)
	if err != nil || step < 0 || strconv.Itoa(step) != digits {
		return &teller{step: none}
	}
	return &teller{step: step, whole: !isStep}
}

// show tells what the reader does not know yet, and otherwise gives a sign of life when it is time.
func (t *teller) show(now tale, progress *resource.Progress) error {
	for _, e := range now.steps {
		if t.step != none && e.Seq > t.step {
			if err := t.event("step", strconv.Itoa(e.Seq)+".step", lineOf(e)); err != nil {
				return err
			}
			t.step = e.Seq
		}
	}
	switch {
	case !t.version.Equal(now.run.UpdatedAt):
		t.step, t.version, t.progress = now.last(), now.run.UpdatedAt, progress
		body, err := now.body(progress)
		if err != nil {
			return err
		}
		return t.event("run", strconv.Itoa(t.step), body)
	case progress != nil && progress != t.progress:
		t.progress = progress
		return t.event("progress", "", progress)
	case time.Since(t.last) > heartbeat-time.Second:
		return t.send(": still " + string(now.run.State) + "\n\n")
	}
	return nil
}

// event writes one event; without an id the reader keeps the last one.
func (t *teller) event(name, id string, data any) error {
	body, err := json.Marshal(data, json.Deterministic(true))
	if err != nil {
		return err
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	return t.send(fmt.Sprintf("event: %s\n%sdata: %s\n\n", name, id, body))
}

// send lets a failing write pass: the reader has gone or takes nothing any more, and net/http ends the request's context for it.
func (t *teller) send(text string) error {
	t.last = time.Now()
	if err := t.out.SetWriteDeadline(t.last.Add(patience)); errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := t.w.Write([]byte(text)); err == nil {
		_ = t.out.Flush()
	}
	return nil
}
