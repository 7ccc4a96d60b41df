package main

import (
	"context"
	"net/http"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/web"
)

// asked is a request that is still being answered.
type asked struct {
	done chan struct{}
	got  servicetest.Reply
	err  error
	took time.Duration
}

// ask sends a request without waiting for its answer.
func (q *query) ask(r *http.Request) *asked {
	a := &asked{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		start := time.Now()
		a.got, a.err = q.Try(r)
		a.took = time.Since(start)
	}()
	return a
}

// answer waits for the answer, for as long as a test may.
func (a *asked) answer(t *testing.T) servicetest.Reply {
	t.Helper()
	select {
	case <-a.done:
	case <-time.After(20 * time.Second):
		t.Fatal("there is no answer")
	}
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a.got
}

// waitFor asks for a version other than run's, and returns when the service holds the request.
func (q *query) waitFor(t *testing.T, run lifecycle.Run, prefer string) *asked {
	t.Helper()
	a := q.ask(q.Request(t, "GET", path(run), q.Owner, "", "If-None-Match", web.ETag(run.ID, run.UpdatedAt), "Prefer", prefer))
	servicetest.Eventually(t, "the request waits", func() bool { return q.hot.waiters(run.Ref) == 1 })
	return a
}

// Who has not seen this version is answered at once, however long they would have waited.
func TestWaitIsOverAtOnceForWhoHasNotSeenIt(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	old := web.ETag(run.ID, run.UpdatedAt.Add(-time.Second))
	for _, tag := range []string{"", old, "garbage"} {
		reply := q.ask(q.Request(t, "GET", path(run), q.Owner, "", "If-None-Match", tag, "Prefer", "wait=25")).answer(t)
		if reply.Status != 200 || reply.Header.Get("Preference-Applied") != "wait=25" {
			t.Errorf("If-None-Match %q: %d, %v", tag, reply.Status, reply.Header)
		}
	}
	q.Send(t, "GET", servicetest.Path(run, 2), q.OtherProject, "", "If-None-Match", "*", "Prefer", "wait=25").Refused(t, 404, "not_found")
}

// A hint wakes who waits. By its own looks alone the service would take a second each time.
func TestWaitIsWokenByHints(t *testing.T) {
	t.Parallel()
	q := open(t)
	start := time.Now()
	const rounds = 6
	for range rounds {
		run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
		waiting := q.waitFor(t, run, "wait=25")
		q.hot.hint(run.Ref) // a hint without a change answers nothing
		servicetest.Eventually(t, "the hint was taken", func() bool { return q.hot.heeds(run.Ref) })
		next := q.Step(t, run, lifecycle.Parsed).Run
		q.hot.hint(run.Ref)
		reply := waiting.answer(t)
		if reply.Status != 200 || reply.Header.Get("Etag") != web.ETag(next.ID, next.UpdatedAt) || reply.JSON(t)["phase"] != "awaiting_confirm" {
			t.Errorf("got %d %s", reply.Status, reply.Body)
		}
		if got := reply.Header.Get("Preference-Applied"); got != "wait=25" {
			t.Errorf("Preference-Applied is %q", got)
		}
	}
	if took := time.Since(start); took >= rounds*look {
		t.Errorf("%d answers took %s: nobody was woken", rounds, took)
	}
}

// Without a single hint the next look finds the change.
func TestWaitLooksForItself(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.Code2WF, lifecycle.Processing)
	waiting := q.waitFor(t, run, "wait=25")
	q.Step(t, run, lifecycle.Complete)
	if reply := waiting.answer(t); reply.Status != 200 || reply.JSON(t)["status"] != "completed" {
		t.Errorf("got %d %s", reply.Status, reply.Body)
	}
	if waiting.took > 15*time.Second {
		t.Errorf("the change was found after %s", waiting.took)
	}
}

// When the time is over the answer is 304, and not before.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.AwaitingConfirm)
	waiting := q.waitFor(t, run, "wait=2")
	reply := waiting.answer(t)
	if reply.Status != 304 || reply.Body != "" || reply.Header.Get("Preference-Applied") != "wait=2" || reply.Header.Get("Retry-After") != "5" {
		t.Errorf("got %d %s %v", reply.Status, reply.Body, reply.Header)
	}
	if waiting.took < 2*time.Second {
		t.Errorf("answered after %s already", waiting.took)
	}
	if n := q.hot.waiters(run.Ref); n != 0 {
		t.Errorf("%d requests are still watched for", n)
	}
}

// A run that is deleted meanwhile is gone.
func TestWaitForADeletedRun(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Failed)
	waiting := q.waitFor(t, run, "wait=25")
	q.Step(t, run, lifecycle.Delete)
	q.hot.hint(run.Ref)
	waiting.answer(t).Refused(t, 404, "not_found")
}

// Whoever hangs up is waited for no longer.
func TestWaitIsForgottenWithItsClient(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	ctx, hangUp := context.WithCancel(t.Context())
	r := q.Request(t, "GET", path(run), q.Owner, "", "If-None-Match", web.ETag(run.ID, run.UpdatedAt), "Prefer", "wait=25")
	a := q.ask(r.WithContext(ctx))
	servicetest.Eventually(t, "the request waits", func() bool { return q.hot.waiters(run.Ref) == 1 })
	hangUp()
	<-a.done
	servicetest.Eventually(t, "the request is forgotten", func() bool { return q.hot.waiters(run.Ref) == 0 })
}

// What is preferred is said as RFC 7240 has it, and what was applied is answered.
func TestPreferences(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	for prefer, applied := range map[string]string{
		"wait=5": "wait=5", "WAIT=5": "wait=5", `wait="5"`: "wait=5", "wait = 5": "wait=5", "respond-async, wait=5": "wait=5", "wait=5; x=y, foo": "wait=5",
		"wait=3, wait=5": "wait=3", "wait=25": "wait=25", "wait=26": "wait=25", "wait=1000000": "wait=25", "wait=99999999999999999999": "wait=25",
		"wait=0": "", "wait": "", "wait=": "", "wait=-1": "", "wait=1.5": "", "wait=five": "", "waiting=5": "", "x-wait=5": "", ";wait=5": "",
	} {
		if got := q.get(t, path(run), "Prefer", prefer).Header.Get("Preference-Applied"); got != applied {
			t.Errorf("Prefer: %s: applied is %q; want %q", prefer, got, applied)
		}
	}
	r := q.Request(t, "GET", path(run), q.Owner, "")
	r.Header["Prefer"] = []string{"respond-async", "wait=7"}
	if reply := q.ask(r).answer(t); reply.Header.Get("Preference-Applied") != "wait=7" {
		t.Errorf("in two headers: %v", reply.Header)
	}
}
