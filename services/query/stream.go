package main

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
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

// stream tells a run's versions and progress as Server-Sent Events until the run has ended, the reader has gone or the service shuts
// down. Each event is the whole resource, with its version as the event id: a reader that comes back with Last-Event-ID is told
// what it has not seen.
func (s *server) stream(r *http.Request, ref lifecycle.Ref, read reader) (*web.Reply, error) {
	run, err := read(r.Context())
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-store"}, "X-Accel-Buffering": {"no"}}
	if r.Method == http.MethodHead { // a stream without a body would only hold the connection
		return &web.Reply{Header: header}, nil
	}
	if run.Ended() && r.Header.Get("Last-Event-ID") == eventID(run) { // nothing will ever follow: an EventSource stops at 204
		return &web.Reply{Status: http.StatusNoContent}, nil
	}
	return &web.Reply{Header: header, Stream: func(w http.ResponseWriter, r *http.Request) error {
		t := teller{w: w, out: http.NewResponseController(w), seen: r.Header.Get("Last-Event-ID")}
		return s.tell(r, &t, ref, run, read)
	}}, nil
}

func (s *server) tell(r *http.Request, t *teller, ref lifecycle.Ref, run lifecycle.Run, read reader) error {
	changed, forget := s.watch.changes(ref)
	defer forget()
	over := time.After(longest)
	for {
		if err := t.show(run, s.watch.progress(run)); err != nil || run.Ended() {
			return err
		}
		select {
		case <-changed:
		case <-time.After(look):
		case <-over:
			return nil
		case <-app.Draining(r.Context()):
			return nil
		case <-r.Context().Done():
			return nil
		}
		var err error
		if run, err = read(r.Context()); err != nil {
			return err
		}
	}
}

// eventID is the run's version as the stream tells it: the ETag without its quotes.
func eventID(run lifecycle.Run) string { return strings.Trim(web.ETag(run.ID, run.UpdatedAt), `"`) }

// teller writes the events of one stream.
type teller struct {
	w        http.ResponseWriter
	out      *http.ResponseController
	seen     string // the last version told
	progress string // the last progress told with it, as it was written
	last     time.Time
}

// show tells run if the reader has not seen this version or this progress, and otherwise gives a sign of life when it is time.
func (t *teller) show(run lifecycle.Run, progress *resource.Progress) error {
	id := eventID(run)
	latest, err := written(progress)
	if err != nil {
		return err
	}
	switch {
	case id != t.seen:
		whole, err := written(resource.Of(run, progress))
		if err != nil {
			return err
		}
		t.seen, t.progress = id, latest
		return t.event("run", id, whole)
	case progress != nil && latest != t.progress:
		t.progress = latest
		return t.event("progress", id, latest)
	case t.last.IsZero() || time.Since(t.last) > heartbeat:
		return t.send(": still " + string(run.State) + "\n\n")
	}
	return nil
}

func written(v any) (string, error) {
	data, err := json.Marshal(v, json.Deterministic(true))
	return string(data), err
}

func (t *teller) event(name, id, data string) error {
	return t.send(fmt.Sprintf("event: %s\nid: %s\ndata: %s\n\n", name, id, data))
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
