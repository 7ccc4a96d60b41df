package main

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/web"
)

// A result is linked to for five minutes, signed and by its key; so is the artifact of a failure.
func TestResultLink(t *testing.T) {
	t.Parallel()
	q := open(t)
	failed := q.In(t, lifecycle.WF2Des, lifecycle.Assembling)
	worker := lifecycle.Actor{Voice: lifecycle.Worker, Name: platform.UserWorker}
	applied, err := q.Store.Apply(t.Context(), lifecycle.Command{Verb: lifecycle.Fail, Run: failed.Ref, Attempt: 1, By: worker,
		Message: "It failed.", Result: lifecycle.Result{Key: new("wf2des/" + failed.ID + "/1/失敗 log.json")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []lifecycle.Run{q.In(t, lifecycle.WF2Des, lifecycle.Completed), q.In(t, lifecycle.Code2WF, lifecycle.Completed), applied.Run} {
		asked := time.Now()
		reply := q.get(t, path(run)+"/result")
		got := reply.JSON(t)
		link, err := url.Parse(got["url"].(string))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(link.Host, "framerun-artifacts.") || link.Path != "/"+*run.ResultURL || got["key"] != *run.ResultURL {
			t.Errorf("the link to %s is %s", *run.ResultURL, link)
		}
		signed := link.Query()
		if signed.Get("X-Amz-Expires") != "300" || signed.Get("X-Amz-Signature") == "" {
			t.Errorf("the link is not signed for five minutes: %s", link)
		}
		expires, err := time.Parse(time.RFC3339Nano, got["expiresAt"].(string))
		if early, late := asked.Add(5*time.Minute), time.Now().Add(5*time.Minute); err != nil || expires.Before(early.Truncate(time.Microsecond)) || expires.After(late) {
			t.Errorf("expiresAt is %v; want between %s and %s", got["expiresAt"], early, late)
		}
		if len(got) != 3 || reply.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("got %v, Cache-Control %q; a link is for the caller alone", got, reply.Header.Get("Cache-Control"))
		}
		if head := q.Send(t, "HEAD", path(run)+"/result", q.Owner, ""); head.Status != 200 || head.Body != "" {
			t.Errorf("HEAD: %d %q", head.Status, head.Body)
		}
	}
}

// Where there is nothing to link to, the refusal tells how the run stands.
func TestResultOfARunThatHasNone(t *testing.T) {
	t.Parallel()
	q := open(t)
	for _, kind := range lifecycle.Kinds {
		for _, state := range servicetest.StatesOf(kind) {
			if state == lifecycle.Completed {
				continue
			}
			run := q.In(t, kind, state)
			problem := q.Send(t, "GET", path(run)+"/result", q.Owner, "").Refused(t, 409, "state_conflict")
			actions := shown[state].actions
			for name, want := range map[string]any{"runStatus": shown[state].status, "phase": shown[state].phase, "attempt": 1.0, "nextActions": actions,
				"createdAt": web.Timestamp(run.CreatedAt)} {
				if got, there := problem[name]; !there || !cmp.Equal(got, want) {
					t.Errorf("%s %s: %s is %v; want %v", kind, state, name, got, want)
				}
			}
		}
	}
}

// The timeline is what happened, oldest first: who did what, from where to where, and what came too late.
func TestTimeline(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Completed)
	for _, verb := range []lifecycle.Verb{lifecycle.Complete, lifecycle.Fail, lifecycle.Place, lifecycle.Rate} {
		q.Step(t, run, verb)
	}
	reply := q.get(t, path(run)+"/timeline")
	user, worker := platform.UserPlugin, platform.UserWorker
	key := "wf2des/" + run.ID + "/1/spec.json"
	result := map[string]any{"resultUrl": key, "flagCount": 2.0, "score": 0.8125, "scoreVersion": "ds@1.0"}
	var want []any
	last := ""
	for i, line := range []struct {
		what, outcome, by, actor string
		from                     any
		to                       string
		data                     map[string]any
	}{
		{"created", "applied", "user", user, nil, "parsing", nil},
		{"parsed", "applied", "worker", worker, "parsing", "awaiting_confirm", nil},
		{"confirmed", "applied", "user", user, "awaiting_confirm", "assembling", nil},
		{"completed", "applied", "worker", worker, "assembling", "completed", result},
		{"completed", "duplicate", "worker", worker, "completed", "completed", result},
		{"failed", "already_terminal", "worker", worker, "completed", "completed", map[string]any{"errorMessage": "The page could not be read."}},
		{"placed", "applied", "user", user, "completed", "completed", nil},
		{"rated", "applied", "user", user, "completed", "completed", map[string]any{"feedbackStatus": "adopted"}},
	} {
		item := map[string]any{"seq": float64(i + 1), "what": line.what, "outcome": line.outcome, "by": line.by, "actor": line.actor,
			"from": line.from, "to": line.to, "attempt": 1.0}
		for name, value := range line.data {
			item[name] = value
		}
		want = append(want, item)
	}
	items := reply.JSON(t)["items"].([]any)
	for _, item := range items {
		at, _ := item.(map[string]any)["at"].(string)
		if _, err := time.Parse("2006-01-02T15:04:05.000000Z", at); err != nil || at <= last {
			t.Errorf("at is %q, after %q", at, last)
		}
		last = at
		delete(item.(map[string]any), "at")
	}
	if diff := cmp.Diff(want, items); diff != "" {
		t.Errorf("the timeline (-want +got):\n%s", diff)
	}
	q.Step(t, run, lifecycle.Delete)
	for _, suffix := range []string{"", "/timeline", "/result"} {
		q.Send(t, "GET", path(run)+suffix, q.Owner, "").Refused(t, 404, "not_found")
	}
}
