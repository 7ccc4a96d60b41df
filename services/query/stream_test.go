package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/web"
)

// reader is a stream as a browser's EventSource reads it.
type reader struct {
	*http.Response
	lines  *bufio.Reader
	hangUp context.CancelFunc
}

// told is one event.
type told struct{ event, id, data string }

// stream opens the stream of a run.
func (q *query) stream(t *testing.T, run lifecycle.Run, headers ...string) *reader {
	t.Helper()
	return follow(t, q.Client, q.Owner, run, headers...)
}

func follow(t *testing.T, c *servicetest.Client, as servicetest.Principal, run lifecycle.Run, headers ...string) *reader {
	t.Helper()
	ctx, hangUp := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(hangUp)
	r := c.Request(t, "GET", path(run), as, "", append([]string{"Accept", "text/event-stream"}, headers...)...)
	response, err := c.HTTP.Do(r.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return &reader{response, bufio.NewReader(response.Body), hangUp}
}

// block reads up to the next empty line; false at the end of the stream.
func (r *reader) block(t *testing.T) ([]string, bool) {
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
func (r *reader) next(t *testing.T) (e told, ok bool) {
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

// run checks that the next event shows this version of the run, which some step has led to.
func (r *reader) run(t *testing.T, run lifecycle.Run, step int) {
	t.Helper()
	e, ok := r.next(t)
	if !ok || e.event != "run" || e.id != strconv.Itoa(step) || body(t, e.data)["updatedAt"] != web.Timestamp(run.UpdatedAt) {
		t.Fatalf("got %+v, %t; want the run after step %d, %s", e, ok, step, web.Timestamp(run.UpdatedAt))
	}
}

// step checks that the next event is this step.
func (r *reader) step(t *testing.T, what lifecycle.What, step int) {
	t.Helper()
	e, ok := r.next(t)
	if !ok || e.event != "step" || e.id != strconv.Itoa(step)+".step" || body(t, e.data)["what"] != string(what) {
		t.Fatalf("got %+v, %t; want step %d, %s", e, ok, step, what)
	}
}

// ends checks that there are no more events.
func (r *reader) ends(t *testing.T) {
	t.Helper()
	if e, more := r.next(t); more {
		t.Errorf("the stream goes on with %+v", e)
	}
}

// A stream tells the run as GET would show it, each step as the timeline shows it, and ends with the run.
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
		if whole := q.get(t, path(run)); e.event != "run" || e.id != "1" || e.data != whole.Body {
			t.Errorf("the first event is %+v; GET says %s", e, whole.Body)
		}
		step := 1
		for _, verb := range []lifecycle.Verb{lifecycle.Parsed, lifecycle.Confirm, lifecycle.Complete} {
			if kind == lifecycle.Code2WF && verb != lifecycle.Complete {
				continue
			}
			run = q.Step(t, run, verb).Run
			q.hot.hint(run.Ref)
			step++
			e, _ := s.next(t)
			line := q.get(t, path(run)+"/timeline").JSON(t)["items"].([]any)[step-1]
			if diff := cmp.Diff(line, any(body(t, e.data))); e.event != "step" || e.id != strconv.Itoa(step)+".step" || diff != "" {
				t.Errorf("got %+v; want the timeline's line:\n%s", e, diff)
			}
			s.run(t, run, step)
		}
		s.ends(t)
		again := q.stream(t, run)
		again.run(t, run, step)
		again.ends(t)
	}
}

// A change of which nobody was told is found by the looks.
func TestStreamLooksForItself(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.Code2WF, lifecycle.Processing)
	s := q.stream(t, run)
	s.run(t, run, 1)
	next := q.Step(t, run, lifecycle.Fail).Run
	s.step(t, lifecycle.WasFailed, 2)
	s.run(t, next, 2)
	s.ends(t)
}

// Progress is told once, as it comes; the run is not told again for it, and the reader keeps its place.
func TestStreamTellsProgressOnce(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	s := q.stream(t, run)
	s.run(t, run, 1)
	at := time.Now()
	for i, message := range []string{"Reading", "Reading more"} {
		q.self.heard(run.Ref, report(run, at.Add(time.Duration(i)*time.Second), float64(40+i), message))
		e, _ := s.next(t)
		if got := body(t, e.data); e.event != "progress" || e.id != "" || got["message"] != message || got["percent"] != float64(40+i) {
			t.Fatalf("got %+v; want the progress %q", e, message)
		}
		for range 3 { // hints that have nothing new
			q.hot.hint(run.Ref)
			servicetest.Eventually(t, "the hint was taken", func() bool { return q.hot.heeds(run.Ref) })
		}
	}
	next := q.Step(t, run, lifecycle.Cancel).Run
	q.hot.hint(run.Ref)
	s.step(t, lifecycle.WasCancelled, 2) // and not the progress once more
	s.run(t, next, 2)
	s.ends(t)
}

// Who comes back is told every step that was missed, whichever event was the last to arrive, and none twice. Catches a stream that
// tells only how it is now, and one whose ids lose the run between a step and itself.
func TestStreamGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	run = q.Step(t, run, lifecycle.Parsed).Run
	run = q.Step(t, run, lifecycle.Confirm).Run
	for seen, missed := range map[string][]int{"1": {2, 3}, "2": {3}, "2.step": {3}, "3.step": {}, "0": {1, 2, 3}} {
		s := q.stream(t, run, "Last-Event-ID", seen)
		for _, step := range missed {
			s.step(t, []lifecycle.What{"", lifecycle.WasCreated, lifecycle.WasParsed, lifecycle.WasConfirmed}[step], step)
		}
		s.run(t, run, 3)
		s.hangUp()
	}
	for _, made := range []string{"garbage", "4", "4.step", "-1", "03", "3.5", "99999999999999999999"} {
		s := q.stream(t, run, "Last-Event-ID", made)
		s.run(t, run, 3)
		s.hangUp()
	}
	s := q.stream(t, run, "Last-Event-ID", "3")
	if lines, ok := s.block(t); !ok || len(lines) != 1 || !strings.HasPrefix(lines[0], ":") {
		t.Errorf("the first word is %q; want a sign of life", lines)
	}
	next := q.Step(t, run, lifecycle.Complete).Run
	q.hot.hint(run.Ref)
	s.step(t, lifecycle.WasCompleted, 4)
	s.run(t, next, 4)
	s.ends(t)
}

// A worker's word that came too late is in the timeline and changes nothing: no stream tells it.
func TestStreamPassesLateWordsOver(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	run = q.Step(t, run, lifecycle.Parsed).Run
	q.Step(t, run, lifecycle.Parsed)              // line 3: told twice
	next := q.Step(t, run, lifecycle.Confirm).Run // line 4
	s := q.stream(t, run, "Last-Event-ID", "1")
	s.step(t, lifecycle.WasParsed, 2)
	s.step(t, lifecycle.WasConfirmed, 4)
	s.run(t, next, 4)
}

// A reader who was told more by another replica is not told less by this one, hint or no hint.
func TestStreamDoesNotGoBack(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	q.get(t, path(run)) // this replica knows step 1
	next := q.Step(t, run, lifecycle.Parsed).Run
	s := q.stream(t, run, "Last-Event-ID", "2")
	if lines, ok := s.block(t); !ok || len(lines) != 1 || !strings.HasPrefix(lines[0], ":") {
		t.Errorf("the first word is %q; want a sign of life", lines)
	}
	after := q.Step(t, next, lifecycle.Reject).Run
	s.step(t, lifecycle.WasRejected, 3)
	s.run(t, after, 3)
	s.ends(t)
}

// Who has seen the end is told to stop asking: an EventSource that got an empty stream would come back for ever. Who has seen only the
// step that led there has not.
func TestStreamOfASeenEndIs204(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Completed)
	end := len(q.get(t, path(run)+"/timeline").JSON(t)["items"].([]any))
	if s := q.stream(t, run, "Last-Event-ID", strconv.Itoa(end)); s.StatusCode != http.StatusNoContent {
		t.Errorf("%s, want 204", s.Status)
	}
	for _, seen := range []string{"", strconv.Itoa(end) + ".step"} {
		s := q.stream(t, run, "Last-Event-ID", seen)
		s.run(t, run, end)
		s.ends(t)
	}
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
		until(t, "the reader is there", func() bool { return q.hot.waiters(run.Ref) == 1 })
		hangUp()
		<-gone
		until(t, "the reader is gone", func() bool { return q.hot.waiters(run.Ref) == 0 })
	}
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
	s.run(t, run, 1)
	q.SQL.MustExec(`UPDATE wf2des SET status = '4', phase = NULL, deleted_at = now() WHERE id = $1`, run.ID)
	q.hot.hint(run.Ref)
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
	if n := q.hot.waiters(open.Ref); n != 0 {
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
	var streams []*reader
	for range readers {
		s := q.stream(t, run)
		s.run(t, run, 1)
		streams = append(streams, s)
	}
	if n := q.hot.waiters(run.Ref); n != readers {
		t.Errorf("%d readers are watched for; want %d", n, readers)
	}
	for _, s := range streams {
		s.hangUp()
	}
	servicetest.Eventually(t, "the readers are forgotten", func() bool { return q.hot.waiters(run.Ref) == 0 })
	servicetest.Eventually(t, "their goroutines have ended", func() bool {
		q.HTTP.CloseIdleConnections()
		return runtime.NumGoroutine() <= before+2
	})
}

// A stream, too, begins with nothing older than its client shows to have seen.
func TestStreamHeedsTheVersionSeen(t *testing.T) {
	t.Parallel()
	q := still(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	q.get(t, path(run)) // this replica knows the first version
	next := q.Step(t, run, lifecycle.Parsed).Run
	q.stream(t, run, "If-None-Match", web.ETag(next.ID, next.UpdatedAt)).run(t, next, 2)
}
