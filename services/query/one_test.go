package main

import (
	"encoding/json/v2"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"
	"uuid"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/web"
)

// shown is how a run in each state looks, written down once more.
var shown = map[lifecycle.State]struct {
	status  string
	phase   any
	actions []any
	retry   string
}{
	lifecycle.Parsing:         {"processing", "parse", []any{"cancel"}, "2"},
	lifecycle.AwaitingConfirm: {"processing", "awaiting_confirm", []any{"confirm", "reject", "cancel"}, "5"},
	lifecycle.Assembling:      {"processing", "assemble", []any{"cancel"}, "2"},
	lifecycle.Processing:      {"processing", nil, []any{}, "2"},
	lifecycle.Completed:       {"completed", nil, []any{"place", "feedback", "delete"}, ""},
	lifecycle.Failed:          {"failed", nil, []any{"delete"}, ""},
	lifecycle.Rejected:        {"rejected", nil, []any{"delete"}, ""},
	lifecycle.Cancelled:       {"cancelled", nil, []any{"delete"}, ""},
}

// where a client goes for each action.
var actionPaths = map[string]string{
	"confirm": "/confirm", "reject": "/confirm", "cancel": "/cancel", "place": "/placement", "feedback": "/feedback", "delete": "",
}

// resourceOf is what a client must be shown of a run that was made by In with nothing but the necessary.
func resourceOf(run lifecycle.Run) map[string]any {
	s, self := shown[run.State], path(run)
	actions := s.actions
	if run.Kind == lifecycle.Code2WF && run.State == lifecycle.Completed {
		actions = []any{"place", "delete"}
	}
	links := map[string]any{"self": self, "timeline": self + "/timeline"}
	for _, action := range actions {
		links[action.(string)] = self + actionPaths[action.(string)]
	}
	by := map[lifecycle.State]string{lifecycle.AwaitingConfirm: platform.UserWorker, lifecycle.Completed: platform.UserWorker, lifecycle.Failed: platform.UserWorker}[run.State]
	if by == "" {
		by = platform.UserPlugin
	}
	r := map[string]any{
		"kind": string(run.Kind), "id": run.ID, string(run.Kind) + "Id": run.ID, "organizationId": 1.0, "projectId": 1.0,
		"figmaFileKey": "itMrdXTfcIHTHbSGK0Ivox", "screenId": "screen", "placementTarget": nil, "status": s.status, "attempt": 1.0,
		"flagCount": nil, "resultUrl": nil, "errorMessage": nil, "materializedAt": nil,
		"createdAt": run.CreatedAt.Format("2006-01-02T15:04:05.000000Z"), "updatedAt": run.UpdatedAt.Format("2006-01-02T15:04:05.000000Z"),
		"createdBy": platform.UserPlugin, "updatedBy": by, "done": s.status != "processing", "nextActions": actions, "links": links,
	}
	if run.Kind == lifecycle.Code2WF {
		r["pageImportId"] = platform.PageImportID
	} else {
		maps.Copy(r, map[string]any{"wfNodeId": run.WFNodeID, "edge": "wf2des", "prompt": nil, "autoConfirm": "normal", "triggerSurface": "plugin",
			"phase": s.phase, "feedbackStatus": nil, "score": nil, "scoreVersion": nil})
	}
	switch run.State {
	case lifecycle.Completed:
		r["resultUrl"], r["flagCount"], links["result"] = fmt.Sprintf("%s/%s/1/spec.json", run.Kind, run.ID), 2.0, self+"/result"
		if run.Kind == lifecycle.WF2Des {
			r["score"], r["scoreVersion"] = 0.8125, "ds@1.0"
		}
	case lifecycle.Failed:
		r["errorMessage"] = "The page could not be read."
	}
	return r
}

// Every member in every state of both kinds, and HEAD tells the same without a body.
func TestOneShowsTheWholeRun(t *testing.T) {
	t.Parallel()
	q := open(t)
	for _, kind := range lifecycle.Kinds {
		for _, state := range servicetest.StatesOf(kind) {
			run := q.In(t, kind, state)
			before := q.Content(t)
			reply := q.get(t, path(run))
			if diff := cmp.Diff(resourceOf(run), reply.JSON(t)); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", kind, state, diff)
			}
			for name, want := range map[string]string{"Etag": web.ETag(run.ID, run.UpdatedAt), "Retry-After": shown[state].retry,
				"Content-Type": "application/json", "Cache-Control": "private, no-cache", "Vary": "Accept, Prefer", "Preference-Applied": ""} {
				if got := reply.Header.Get(name); got != want {
					t.Errorf("%s %s: %s is %q; want %q", kind, state, name, got, want)
				}
			}
			head := q.Send(t, "HEAD", path(run), q.Owner, "")
			for _, each := range []servicetest.Reply{head, reply} {
				each.Header.Del("X-Request-Id")
				each.Header.Del("Date")
			}
			if diff := cmp.Diff(reply.Header, head.Header); head.Status != 200 || head.Body != "" || diff != "" {
				t.Errorf("HEAD is %d %q and differs: %s", head.Status, head.Body, diff)
			}
			if diff := cmp.Diff(before, q.Content(t)); diff != "" {
				t.Errorf("a read changed something: %s", diff)
			}
		}
	}
}

// What a placed and rated run shows, and what it no longer offers.
func TestOneShowsPlacementAndFeedback(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Completed)
	placed := q.Step(t, run, lifecycle.Place).Run
	rated := q.Step(t, run, lifecycle.Rate).Run
	got := q.get(t, path(run)).JSON(t)
	for name, want := range map[string]any{
		"materializedAt": web.Timestamp(*placed.MaterializedAt), "feedbackStatus": "adopted", "updatedAt": web.Timestamp(rated.UpdatedAt),
		"nextActions": []any{"feedback", "delete"}, "updatedBy": q.Owner.Subject,
	} {
		if !cmp.Equal(got[name], want) {
			t.Errorf("%s is %v; want %v", name, got[name], want)
		}
	}
	if _, offered := got["links"].(map[string]any)["place"]; offered {
		t.Error("a placed run offers a link to place it")
	}
	q.Step(t, run, lifecycle.Delete)
	q.hot.hint(run.Ref)
	q.Send(t, "GET", path(run), q.Owner, "").Refused(t, 404, "not_found")
}

// A score is a JSON number with at most four decimals, as exact as the row.
func TestScoreIsAPlainNumber(t *testing.T) {
	t.Parallel()
	q := open(t)
	for score, want := range map[lifecycle.Score]string{0: "0", 1: "0.0001", 3: "0.0003", 10: "0.001", 1000: "0.1", 2999: "0.2999",
		5700: "0.57", 8125: "0.8125", 9999: "0.9999", 10000: "1"} {
		run := q.In(t, lifecycle.WF2Des, lifecycle.Assembling)
		_, err := q.Store.Apply(t.Context(), lifecycle.Command{Verb: lifecycle.Complete, Run: run.Ref, Attempt: 1,
			By:     lifecycle.Actor{Voice: lifecycle.Worker, Name: platform.UserWorker},
			Result: lifecycle.Result{Key: new("wf2des/" + run.ID + "/1/x"), FlagCount: new(0), Score: &score, ScoreVersion: new("ds@1.0")}})
		if err != nil {
			t.Fatal(err)
		}
		if reply := q.get(t, path(run)); !strings.Contains(reply.Body, `"score":`+want+`,`) {
			t.Errorf("%s is not in %s", want, reply.Body)
		}
		if reply := q.get(t, path(run)+"/timeline"); !strings.Contains(reply.Body, `"score":`+want+`,`) {
			t.Errorf("%s is not in the timeline %s", want, reply.Body)
		}
	}
}

// The names of real layers are shown exactly as they were given.
func TestRealNamesAreShownExactly(t *testing.T) {
	t.Parallel()
	q := open(t)
	file, err := os.ReadFile("../../pkg/figma/testdata/figma-frames.json")
	if err != nil {
		t.Fatal(err)
	}
	var frames []struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(file, &frames); err != nil || len(frames) < 50 {
		t.Fatalf("%d frames, %v", len(frames), err)
	}
	names := []string{" ", "\u2028", "\uffff\ufffe", "\x01\x1f\x7f", "\ufeff", "</script>", "e\u0301é", "\U0010ffff"}
	for _, f := range frames {
		names = append(names, f.Name)
	}
	for _, name := range names {
		run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing, func(r *lifecycle.Run) { r.Prompt = &name })
		if got := q.get(t, path(run)).JSON(t)["prompt"]; got != name {
			t.Errorf("%q is shown as %q", name, got)
		}
	}
}

// The ETag is strong, the same for every caller, and changes with every change of the row and with nothing else.
func TestETag(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	seen := map[string]bool{}
	for _, verb := range []lifecycle.Verb{"", lifecycle.Parsed, lifecycle.Confirm, lifecycle.Complete, lifecycle.Place, lifecycle.Rate} {
		if verb != "" {
			run = q.Step(t, run, verb).Run
			q.hot.hint(run.Ref)
		}
		tag := q.get(t, path(run)).Header.Get("Etag")
		if seen[tag] || !strings.HasPrefix(tag, `"`) || !strings.HasSuffix(tag, `"`) {
			t.Errorf("after %q the ETag is %s", verb, tag)
		}
		seen[tag] = true
		if other := q.Send(t, "GET", path(run), q.Colleague, ""); other.Header.Get("Etag") != tag {
			t.Errorf("a colleague gets the ETag %s", other.Header.Get("Etag"))
		}
	}
	before := q.get(t, path(run))
	q.Step(t, run, lifecycle.Complete) // told twice: a line in the timeline, no change of the row
	if got := q.get(t, path(run)); got.Header.Get("Etag") != before.Header.Get("Etag") || got.Body != before.Body {
		t.Error("a word that changed nothing changed the ETag or the body")
	}
}

// If-None-Match as RFC 9110 §13.1.2 has it.
func TestNotModified(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.AwaitingConfirm)
	tag, old := web.ETag(run.ID, run.UpdatedAt), web.ETag(run.ID, run.UpdatedAt.Add(-time.Microsecond))
	for header, want := range map[string]int{
		tag: 304, "W/" + tag: 304, "*": 304, old + ", " + tag: 304, old: 200, `"` + run.ID + `"`: 200, "garbage": 200,
		strings.Trim(tag, `"`): 200, web.ETag(uuid.NewV7().String(), run.UpdatedAt): 200,
	} {
		for _, method := range []string{"GET", "HEAD"} {
			reply := q.Send(t, method, path(run), q.Owner, "", "If-None-Match", header)
			if reply.Status != want || reply.Header.Get("Etag") != tag || reply.Header.Get("Retry-After") != "5" {
				t.Errorf("%s, If-None-Match: %s: %d with %v; want %d", method, header, reply.Status, reply.Header, want)
			}
			if want == 304 && reply.Body != "" {
				t.Errorf("a 304 has the body %q", reply.Body)
			}
		}
	}
	q.Send(t, "GET", servicetest.Path(run, 2), q.OtherProject, "", "If-None-Match", "*").Refused(t, 404, "not_found")
	q.Send(t, "GET", path(run), q.Nobody, "", "If-None-Match", tag).Refused(t, 401, "unauthenticated")
}

// Nothing but the list takes a query string, and a parameter that would be ignored is refused.
func TestOneTakesNoParameters(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Completed)
	for _, suffix := range []string{"", "/timeline", "/result"} {
		for _, raw := range []string{"?wait=5", "?a;b", "?a=%zz", "?x", "?status=completed", "?a=%00"} {
			q.Send(t, "GET", path(run)+suffix+raw, q.Owner, "").Refused(t, 400, "malformed_request")
		}
		q.get(t, path(run)+suffix+"?")
	}
}
