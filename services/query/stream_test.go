package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/web"
)

// reading is a stream as a browser's EventSource reads it.
type reading struct {
	*http.Response
	lines  *bufio.Reader
	hangUp context.CancelFunc
}

// told is one event.
type told struct{ event, id, data string }

// stream opens the stream of a run.
func (q *query) stream(t *testing.T, run lifecycle.Run, headers ...string) *reading {
	t.Helper()
	return follow(t, q.Client, q.Owner, run, headers...)
}

func follow(t *testing.T, c *servicetest.Client, as servicetest.Principal, run lifecycle.Run, headers ...string) *reading {
	t.Helper()
	ctx, hangUp := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(hangUp)
	r := c.Request(t, "GET", path(run), as, "", append([]string{"Accept", "text/event-stream"}, headers...)...)
	response, err := c.HTTP.Do(r.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return &reading{response, bufio.NewReader(response.Body), hangUp}
}

// block reads up to the next empty line; false at the end of the stream.
func (r *reading) block(t *testing.T) ([]string, bool) {
	t.Helper()
	var lines []string
	for {
		line, err := r.lines.ReadString('\n')
		if err == io.EOF && line == "" && lines == nil {
			return nil, false
		}
		if err != nil {
			t.Fatalf("the stream breaks off after %q: %v", lines, err)
		}
		if line == "\n" {
			return lines, true
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
}

// next is the next event, comments passed over; false at the end of the stream.
func (r *reading) next(t *testing.T) (e told, ok bool) {
	t.Helper()
	for {
		lines, more := r.block(t)
		if !more {
			return e, false
		}
		for _, line := range lines {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "event":
				e.event = value
			case "id":
				e.id = value
			case "data":
				e.data = value
			}
		}
		if e != (told{}) {
			return e, true
		}
	}
}

// run checks that the next event shows this version of the run.
func (r *reading) run(t *testing.T, q *query, run lifecycle.Run) {
	t.Helper()
	e, ok := r.next(t)
	if id := strings.Trim(web.ETag(run.ID, run.UpdatedAt), `"`); !ok || e.event != "run" || e.id != id || body(t, e.data)["status"] != string(run.State.Status()) {
		t.Fatalf("got %+v, %t; want the run %s", e, ok, id)
	}
}

// ends checks that there are no more events.
func (r *reading) ends(t *testing.T) {
	t.Helper()
	if e, more := r.next(t); more {
		t.Errorf("the stream goes on with %+v", e)
	}
}

// A stream tells each version of the run as GET would show it, and ends with the run.
func TestStreamTellsTheRunToItsEnd(t *testing.T) {
	t.Parallel()
	q := open(t)
	for _, kind := range lifecycle.Kinds {
		run := q.In(t, kind, servicetest.StatesOf(kind)[0])
		s := q.stream(t, run)
		for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "Access-Control-Allow-Origin": "*"} {
			if got := s.Header.Get(name); s.StatusCode != 200 || got != want {
				t.Errorf("%d, %s is %q; want %q", s.StatusCode, name, got, want)
			}
		}
		e, _ := s.next(t)
		if whole := q.get(t, path(run)); e.event != "run" || `"`+e.id+`"` != whole.Header.Get("Etag") || e.data != whole.Body {
			t.Errorf("the first event is %+v; GET says %s", e, whole.Body)
		}
		for _, verb := range []lifecycle.Verb{lifecycle.Parsed, lifecycle.Confirm, lifecycle.Complete} {
			if kind == lifecycle.Code2WF && verb != lifecycle.Complete {
				continue
			}
			run = q.Step(t, run, verb).Run
			q.watch.changed(run.Ref)
			s.run(t, q, run)
		}
		s.ends(t)
		again := q.stream(t, run)
		again.run(t, q, run)
		again.ends(t)
	}
}

// A change of which nobody was told is found by the stream's own look.
func TestStreamLooksForItself(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.Code2WF, lifecycle.Processing)
	s := q.stream(t, run)
	s.run(t, q, run)
	s.run(t, q, q.Step(t, run, lifecycle.Fail).Run)
	s.ends(t)
}

// Progress is told once, as it comes; the run is not told again for it.
func TestStreamTellsProgressOnce(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	s := q.stream(t, run)
	s.run(t, q, run)
	at := time.Now()
	for i, message := range []string{"Reading", "Reading more"} {
		q.watch.progressed(run.Ref, report(run, at.Add(time.Duration(i)*time.Second), float64(40+i), message))
		e, _ := s.next(t)
		if got := body(t, e.data); e.event != "progress" || got["message"] != message || got["percent"] != float64(40+i) {
			t.Fatalf("got %+v; want the progress %q", e, message)
		}
		if id := strings.Trim(web.ETag(run.ID, run.UpdatedAt), `"`); e.id != id {
			t.Errorf("the progress has the id %s; want the version's, %s", e.id, id)
		}
		for range 3 { // hints that have nothing new
			q.watch.changed(run.Ref)
			servicetest.Eventually(t, "the hint was taken", func() bool { return q.watch.untold(run.Ref) == 0 })
		}
	}
	next := q.Step(t, run, lifecycle.Cancel).Run
	q.watch.changed(run.Ref)
	s.run(t, q, next) // and not the progress once more
	s.ends(t)
}

// Who comes back with the version they have seen is told only what is new.
func TestStreamGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	seen := strings.Trim(web.ETag(run.ID, run.UpdatedAt), `"`)
	s := q.stream(t, run, "Last-Event-ID", seen)
	if lines, ok := s.block(t); !ok || len(lines) != 1 || !strings.HasPrefix(lines[0], ":") {
		t.Errorf("the first word is %q; want a sign of life", lines)
	}
	next := q.Step(t, run, lifecycle.Parsed).Run
	q.watch.changed(run.Ref)
	s.run(t, q, next)

	missed := q.stream(t, run, "Last-Event-ID", seen)
	missed.run(t, q, next)
	unreadable := q.stream(t, run, "Last-Event-ID", "garbage")
	unreadable.run(t, q, next)
}

// Who has seen the end is told to stop asking: an EventSource that got an empty stream would come back for ever.
func TestStreamOfASeenEndIs204(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Completed)
	if s := q.stream(t, run, "Last-Event-ID", eventID(run)); s.StatusCode != http.StatusNoContent {
		t.Errorf("%s, want 204", s.Status)
	}
	s := q.stream(t, run)
	s.run(t, q, run)
	s.ends(t)
}

// Who hangs up is noticed at once, even when the GET had a body that nobody wanted. Catches a stream that goes on for nobody.
func TestReadersWithABodyAreMissedToo(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	for _, wish := range [][]string{{"Accept", "text/event-stream"}, {"Prefer", "wait=25", "If-None-Match", web.ETag(run.ID, run.UpdatedAt)}} {
		ctx, hangUp := context.WithCancel(t.Context())
		r := q.Request(t, "GET", path(run), q.Owner, `{}`, wish...)
		gone := make(chan error, 1)
		go func() {
			response, err := q.HTTP.Do(r.WithContext(ctx))
			if err == nil {
				_, err = io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
			gone <- err
		}()
		until(t, "the reader is there", func() bool { return q.waiting(run) == 1 })
		hangUp()
		<-gone
		until(t, "the reader is gone", func() bool { return q.waiting(run) == 0 })
	}
}

func (q *query) waiting(run lifecycle.Run) int {
	q.watch.mu.Lock()
	defer q.watch.mu.Unlock()
	return len(q.watch.waiting[run.Ref])
}

// until waits, not for long, for something to become so.
func until(t *testing.T, about string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came about that %s", about)
		}
	}
}

// A run that is deleted meanwhile has no more to tell.
func TestStreamOfADeletedRunEnds(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	s := q.stream(t, run)
	s.run(t, q, run)
	q.SQL.MustExec(`UPDATE wf2des SET status = '4', phase = NULL, deleted_at = now() WHERE id = $1`, run.ID)
	q.watch.changed(run.Ref)
	s.ends(t)
}

// A stream is refused like any other read, with a problem and not with an event.
func TestStreamIsRefusedWithAProblem(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	accept := []string{"Accept", "text/event-stream"}
	q.Send(t, "GET", servicetest.Path(run, 2), q.OtherProject, "", accept...).Refused(t, 404, "not_found")
	q.Send(t, "GET", path(run), q.Intruder, "", accept...).Refused(t, 404, "not_found")
	q.Send(t, "GET", path(run), q.Nobody, "", accept...).Refused(t, 401, "unauthenticated")
	q.Send(t, "GET", path(run)+"?a;b", q.Owner, "", accept...).Refused(t, 400, "malformed_request")
}

// What the client accepts is read as RFC 9110 §12.5.1 has it, as far as streams go.
func TestWhoGetsAStream(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.Code2WF, lifecycle.Failed)
	for accept, want := range map[string]string{
		"text/event-stream": "text/event-stream", "TEXT/Event-Stream;q=1": "text/event-stream", "application/json, text/event-stream": "text/event-stream",
		"*/*": "application/json", "": "application/json", "text/*": "application/json", "application/json": "application/json",
	} {
		if got := q.get(t, path(run), "Accept", accept).Header.Get("Content-Type"); got != want {
			t.Errorf("Accept: %s is answered with %s", accept, got)
		}
	}
	open := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	head := q.ask(q.Request(t, "HEAD", path(open), q.Owner, "", "Accept", "text/event-stream")).answer(t)
	if head.Status != 200 || head.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD of a stream: %d %v", head.Status, head.Header)
	}
	if n := q.watch.waiters(open.Ref); n != 0 {
		t.Error("a HEAD is told of changes for as long as the run lasts, on a connection that its client takes for free")
	}
}

// A reader who has gone leaves nothing behind.
func TestStreamIsForgottenWithItsReader(t *testing.T) {
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	q.get(t, path(run)) // connections, keys and statements are there now
	q.HTTP.CloseIdleConnections()
	before := runtime.NumGoroutine()
	const readers = 20
	var streams []*reading
	for range readers {
		s := q.stream(t, run)
		s.run(t, q, run)
		streams = append(streams, s)
	}
	if n := q.watch.waiters(run.Ref); n != readers {
		t.Errorf("%d readers are watched for; want %d", n, readers)
	}
	for _, s := range streams {
		s.hangUp()
	}
	servicetest.Eventually(t, "the readers are forgotten", func() bool { return q.watch.waiters(run.Ref) == 0 })
	servicetest.Eventually(t, "their goroutines have ended", func() bool {
		q.HTTP.CloseIdleConnections()
		return runtime.NumGoroutine() <= before+2
	})
}
