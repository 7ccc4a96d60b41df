package resource

import (
	"encoding/json/v2"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/web"
	"github.com/google/go-cmp/cmp"
)

var at = time.Date(2026, 11, 29, 10, 2, 3, 120000000, time.FixedZone("JST", 9*60*60))

const self = "/v1/projects/11/wf2des/01980000-0000-7000-8000-000000000001"

// wf2desRun is a run in state, with all that it could have come to by then.
func wf2desRun(state lifecycle.State) lifecycle.Run {
	r := lifecycle.Run{
		Ref: lifecycle.Ref{Kind: lifecycle.WF2Des, ID: "01980000-0000-7000-8000-000000000001"}, Tenant: lifecycle.Tenant{OrganizationID: 7, ProjectID: 11},
		FigmaFileKey: "file", ScreenID: " 画面\u2028", WFNodeID: "1:2", Edge: lifecycle.EdgeDes2WF, TriggerSurface: lifecycle.Plugin,
		State: state, Attempt: 1, CreatedAt: at, UpdatedAt: at.Add(time.Microsecond), CreatedBy: "sub", UpdatedBy: "worker",
	}
	switch state {
	case lifecycle.Completed:
		r.ResultURL, r.FlagCount, r.Score, r.ScoreVersion = new("wf2des/x/1/spec.json"), new(0), new(lifecycle.Score(8125)), new("ds@1.0")
	case lifecycle.Failed:
		r.ErrorMessage = new("The frame is too large.")
	}
	return r
}

func code2wfRun(state lifecycle.State) lifecycle.Run {
	r := wf2desRun(state)
	r.Kind, r.PageImportID, r.WFNodeID, r.Edge, r.TriggerSurface, r.Score, r.ScoreVersion = lifecycle.Code2WF, "page", "", "", "", nil, nil
	return r
}

func shown(t *testing.T, r lifecycle.Run, p *Progress) map[string]any {
	t.Helper()
	raw, err := json.Marshal(Of(r, p))
	var object map[string]any
	if err == nil {
		err = json.Unmarshal(raw, &object)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// members are those that every run of the kind shows, as they are when nothing has come of it yet.
func members(kind lifecycle.Kind, more map[string]any) map[string]any {
	m := map[string]any{
		"kind": string(kind), "id": "01980000-0000-7000-8000-000000000001", "organizationId": 7., "projectId": 11., "figmaFileKey": "file",
		"screenId": " 画面\u2028", "placementTarget": nil, "attempt": 1., "flagCount": nil, "resultUrl": nil, "errorMessage": nil,
		"materializedAt": nil, "createdAt": "2026-11-29T01:02:03.120000Z", "updatedAt": "2026-11-29T01:02:03.120001Z", "createdBy": "sub", "updatedBy": "worker",
	}
	if kind == lifecycle.WF2Des {
		for k, v := range map[string]any{"wf2desId": m["id"], "wfNodeId": "1:2", "edge": "des2wf", "prompt": nil, "autoConfirm": "normal",
			"triggerSurface": "plugin", "phase": nil, "feedbackStatus": nil, "score": nil, "scoreVersion": nil} {
			m[k] = v
		}
	} else {
		m["code2wfId"], m["pageImportId"] = m["id"], "page"
	}
	for k, v := range more {
		m[k] = v
	}
	return m
}

func linked(base string, more ...string) map[string]any {
	l := map[string]any{"self": base, "timeline": base + "/timeline"}
	for _, pair := range more {
		name, path, _ := strings.Cut(pair, " ")
		l[name] = base + path
	}
	return l
}

// The whole resource in each state of both kinds. Catches a member that is missing, misspelled, of internal concern, or another thing
// than null where there is nothing; digits for words; and actions that are not legal now.
func TestTheResourceInEachState(t *testing.T) {
	t.Parallel()
	code2wf := strings.Replace(self, "wf2des", "code2wf", 1)
	for _, tc := range []struct {
		run  lifecycle.Run
		want map[string]any
	}{
		{wf2desRun(lifecycle.Parsing), map[string]any{"status": "processing", "phase": "parse", "done": false, "nextActions": []any{"cancel"}, "links": linked(self, "cancel /cancel")}},
		{wf2desRun(lifecycle.AwaitingConfirm), map[string]any{"status": "processing", "phase": "awaiting_confirm", "done": false,
			"nextActions": []any{"confirm", "reject", "cancel"}, "links": linked(self, "confirm /confirm", "reject /confirm", "cancel /cancel")}},
		{wf2desRun(lifecycle.Assembling), map[string]any{"status": "processing", "phase": "assemble", "done": false, "nextActions": []any{"cancel"}, "links": linked(self, "cancel /cancel")}},
		{wf2desRun(lifecycle.Completed), map[string]any{"status": "completed", "done": true, "resultUrl": "wf2des/x/1/spec.json", "flagCount": 0., "score": 0.8125, "scoreVersion": "ds@1.0",
			"nextActions": []any{"place", "feedback", "delete"}, "links": linked(self, "result /result", "place /placement", "feedback /feedback", "delete ")}},
		{wf2desRun(lifecycle.Failed), map[string]any{"status": "failed", "done": true, "errorMessage": "The frame is too large.", "nextActions": []any{"delete"}, "links": linked(self, "delete ")}},
		{wf2desRun(lifecycle.Rejected), map[string]any{"status": "rejected", "done": true, "nextActions": []any{"delete"}, "links": linked(self, "delete ")}},
		{wf2desRun(lifecycle.Cancelled), map[string]any{"status": "cancelled", "done": true, "nextActions": []any{"delete"}, "links": linked(self, "delete ")}},
		{code2wfRun(lifecycle.Processing), map[string]any{"status": "processing", "done": false, "nextActions": []any{}, "links": linked(code2wf)}},
		{code2wfRun(lifecycle.Completed), map[string]any{"status": "completed", "done": true, "resultUrl": "wf2des/x/1/spec.json", "flagCount": 0.,
			"nextActions": []any{"place", "delete"}, "links": linked(code2wf, "result /result", "place /placement", "delete ")}},
		{code2wfRun(lifecycle.Failed), map[string]any{"status": "failed", "done": true, "errorMessage": "The frame is too large.", "nextActions": []any{"delete"}, "links": linked(code2wf, "delete ")}},
	} {
		if diff := cmp.Diff(members(tc.run.Kind, tc.want), shown(t, tc.run, nil)); diff != "" {
			t.Errorf("a %s run in %s (-want +got):\n%s", tc.run.Kind, tc.run.State, diff)
		}
	}
}

// Catches optional values that are lost or bent on their way to the client.
func TestOptionalValuesAreShown(t *testing.T) {
	t.Parallel()
	r := wf2desRun(lifecycle.Completed)
	placed := at.Add(time.Hour)
	r.PlacementTarget, r.Prompt, r.AutoConfirm, r.MaterializedAt, r.Feedback = new("3:4"), new(""), true, &placed, new(lifecycle.Adopted)
	r.FlagCount, r.Score, r.TriggerSurface, r.Edge = new(12), new(lifecycle.Score(0)), lifecycle.API, lifecycle.EdgeWF2Des
	want := members(lifecycle.WF2Des, map[string]any{
		"status": "completed", "done": true, "resultUrl": "wf2des/x/1/spec.json", "flagCount": 12., "score": 0., "scoreVersion": "ds@1.0", "placementTarget": "3:4",
		"prompt": "", "autoConfirm": "auto_confirm", "materializedAt": "2026-11-29T02:02:03.120000Z", "feedbackStatus": "adopted", "triggerSurface": "api", "edge": "wf2des",
		"nextActions": []any{"feedback", "delete"}, "links": linked(self, "result /result", "feedback /feedback", "delete "),
	})
	if diff := cmp.Diff(want, shown(t, r, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	open := shown(t, wf2desRun(lifecycle.Parsing), &Progress{Percent: new(40.), At: "2026-11-29T01:02:03.000000Z"})
	if diff := cmp.Diff(map[string]any{"percent": 40., "message": nil, "at": "2026-11-29T01:02:03.000000Z"}, open["progress"]); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

// Catches a score that JSON shows with more than four decimals.
func TestScoresHaveFourDecimals(t *testing.T) {
	t.Parallel()
	r := wf2desRun(lifecycle.Completed)
	for score := lifecycle.Score(0); score <= 10000; score++ {
		r.Score = &score
		raw, err := json.Marshal(Of(r, nil))
		_, rest, _ := strings.Cut(string(raw), `"score":`)
		number, _, _ := strings.Cut(rest, ",")
		if want := strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%04d", score/10000, score%10000), "0"), "."); err != nil || number != want {
			// JSON may write a small number with an exponent: it is the same number
			if got, ok := lifecycle.NewScore(float(t, number)); !ok || got != score || len(number) > 6 {
				t.Fatalf("score %d is shown as %s, want %s (%v)", score, number, want, err)
			}
		}
	}
}

func float(t *testing.T, number string) (f float64) {
	t.Helper()
	if err := json.Unmarshal([]byte(number), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// Catches an action that the lifecycle would refuse, one that it allows and that is not offered, and one without its link.
func TestActionsAreThoseOfTheLifecycle(t *testing.T) {
	t.Parallel()
	for _, state := range lifecycle.States {
		for _, in := range []func(lifecycle.State) lifecycle.Run{wf2desRun, code2wfRun} {
			r := in(state)
			if r.Kind == lifecycle.Code2WF && !slices.Contains([]lifecycle.State{lifecycle.Processing, lifecycle.Completed, lifecycle.Failed}, state) ||
				r.Kind == lifecycle.WF2Des && state == lifecycle.Processing {
				continue
			}
			got := shown(t, r, nil)
			for _, verb := range []lifecycle.Verb{lifecycle.Confirm, lifecycle.Reject, lifecycle.Cancel, lifecycle.Place, lifecycle.Rate, lifecycle.Delete} {
				d, err := lifecycle.Decide(r, lifecycle.Command{Verb: verb, Run: r.Ref, Attempt: r.Attempt, Feedback: lifecycle.Fixed}, at.Add(time.Hour))
				legal := err == nil && d.Outcome == lifecycle.Applied
				if offered := slices.Contains(got["nextActions"].([]any), any(string(verb))); offered != legal {
					t.Errorf("%s of a %s run in %s: offered %v, legal %v", verb, r.Kind, state, offered, legal)
				}
				if _, link := got["links"].(map[string]any)[string(verb)]; link != legal {
					t.Errorf("%s of a %s run in %s: linked %v, legal %v", verb, r.Kind, state, link, legal)
				}
			}
		}
	}
}

// Catches a poller that is told to ask too often, or again about what has ended, and an answer without its version.
func TestHeader(t *testing.T) {
	t.Parallel()
	for state, want := range map[lifecycle.State]string{
		lifecycle.Parsing: "2", lifecycle.AwaitingConfirm: "5", lifecycle.Assembling: "2", lifecycle.Processing: "2",
		lifecycle.Completed: "", lifecycle.Failed: "", lifecycle.Rejected: "", lifecycle.Cancelled: "",
	} {
		r := wf2desRun(state)
		h := Header(r)
		if h.Get("Retry-After") != want || h.Get("ETag") != web.ETag(r.ID, r.UpdatedAt) || h.Get("Cache-Control") != "private, no-cache" {
			t.Errorf("%s: %v", state, h)
		}
		reply := Reply(r)
		if diff := cmp.Diff(h, reply.Header); diff != "" || reply.Status != 0 || !cmp.Equal(shown(t, r, nil), object(t, reply.Body)) {
			t.Errorf("%s: Reply differs: %s", state, diff)
		}
	}
}

func object(t *testing.T, body any) (o map[string]any) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}
