package main

import (
	"encoding/json/v2"
	"maps"
	"strings"
	"testing"
	"time"
	"uuid"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/resource"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/web"
)

// creation is a request and what must come of it: members and columns that are not the same for all.
type creation struct {
	name      string
	kind      lifecycle.Kind
	body      map[string]any
	want, row map[string]any
	job       string
}

var fullWF2Des = with(plainWF2Des, "wfNodeId", "I5-6;7-8", "edge", "des2wf", "prompt", " Two columns.\n", "placementTarget", "-1--2", "autoConfirm", "auto_confirm")

// creations say what they must or everything.
var creations = []creation{
	{
		"wf2des, as little as possible", lifecycle.WF2Des, plainWF2Des,
		map[string]any{"wfNodeId": "253:3900", "edge": "wf2des", "prompt": nil, "placementTarget": nil, "autoConfirm": "normal",
			"triggerSurface": "plugin", "phase": "parse", "feedbackStatus": nil, "score": nil, "scoreVersion": nil},
		map[string]any{"wf_node_id": "253:3900", "edge": "0", "prompt": nil, "placement_target": nil, "auto_confirm": "0",
			"trigger_surface": "1", "phase": "0", "feedback_status": nil, "score": nil, "score_version": nil},
		"parse",
	},
	{
		"wf2des, everything", lifecycle.WF2Des, fullWF2Des,
		map[string]any{"wfNodeId": "I5:6;7:8", "edge": "des2wf", "prompt": " Two columns.\n", "placementTarget": "-1:-2",
			"autoConfirm": "auto_confirm", "triggerSurface": "api", "phase": "parse", "feedbackStatus": nil, "score": nil, "scoreVersion": nil},
		map[string]any{"wf_node_id": "I5:6;7:8", "edge": "1", "prompt": " Two columns.\n", "placement_target": "-1:-2", "auto_confirm": "1",
			"trigger_surface": "0", "phase": "0", "feedback_status": nil, "score": nil, "score_version": nil},
		"parse",
	},
	{
		"code2wf, as little as possible", lifecycle.Code2WF, plainCode2WF,
		map[string]any{"pageImportId": platform.PageImportID, "placementTarget": nil},
		map[string]any{"page_import_id": platform.PageImportID, "placement_target": nil},
		"generate",
	},
	{
		"code2wf, everything", lifecycle.Code2WF, with(plainCode2WF, "placementTarget", "12-34"),
		map[string]any{"pageImportId": platform.PageImportID, "placementTarget": "12:34"},
		map[string]any{"page_import_id": platform.PageImportID, "placement_target": "12:34"},
		"generate",
	},
}

// Every member of the answer and every column of the row. The plugin asks for as little as possible, the API for everything.
func TestCreateAnswersWithTheWholeRun(t *testing.T) {
	t.Parallel()
	in := open(t)
	for i, c := range creations {
		t.Run(c.name, func(t *testing.T) {
			as := []servicetest.Principal{in.Owner, in.Colleague}[i%2]
			reply := in.post(t, "/v1/projects/1/"+string(c.kind), as, c.body)
			run := in.created(t, c.kind, reply)
			if id, err := uuid.Parse(run.ID); err != nil || id[6]>>4 != 7 || id.String() != run.ID {
				t.Errorf("the id %q is no UUIDv7 in lower case", run.ID)
			}
			c.answered(t, reply, run, as)
			c.stored(t, in.Row(t, run.Ref), run, as)
			in.sentOff(t, run, as, c.job)
		})
	}
}

// answered checks the 201: it shows the run as a read would.
func (c creation) answered(t *testing.T, reply servicetest.Reply, run lifecycle.Run, as servicetest.Principal) {
	t.Helper()
	self := "/v1/projects/1/" + string(c.kind) + "/" + run.ID
	got := reply.JSON(t)
	at, _ := got["createdAt"].(string)
	if when, err := time.Parse("2006-01-02T15:04:05.000000Z", at); err != nil || !when.Equal(run.CreatedAt) {
		t.Errorf("createdAt is %q; the row has %s", at, run.CreatedAt)
	}
	links, actions := map[string]any{"self": self, "timeline": self + "/timeline"}, []any{}
	if c.kind == lifecycle.WF2Des {
		links["cancel"], actions = self+"/cancel", []any{"cancel"}
	}
	want := map[string]any{
		"kind": string(c.kind), "id": run.ID, string(c.kind) + "Id": run.ID, "organizationId": 1.0, "projectId": 1.0,
		"figmaFileKey": "itMrdXTfcIHTHbSGK0Ivox", "screenId": "지점관리_상세", "status": "processing", "attempt": 1.0,
		"flagCount": nil, "resultUrl": nil, "errorMessage": nil, "materializedAt": nil, "createdAt": at, "updatedAt": at,
		"createdBy": as.Subject, "updatedBy": as.Subject, "done": false, "nextActions": actions, "links": links,
	}
	maps.Copy(want, c.want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the resource (-want +got):\n%s", diff)
	}
	if asRead, err := json.Marshal(resource.Of(run, nil), json.Deterministic(true)); err != nil || string(asRead) != reply.Body {
		t.Errorf("the 201 says\n%s\na read says\n%s", reply.Body, asRead)
	}
	for name, value := range map[string]string{"Location": self, "Retry-After": "2", "Etag": web.ETag(run.ID, run.UpdatedAt),
		"Content-Type": "application/json", "Cache-Control": "private, no-cache"} {
		if got := reply.Header.Get(name); got != value {
			t.Errorf("%s: %q; want %q", name, got, value)
		}
	}
}

// stored checks the row.
func (c creation) stored(t *testing.T, row map[string]any, run lifecycle.Run, as servicetest.Principal) {
	t.Helper()
	at := row["created_at"]
	want := map[string]any{
		"id": run.ID, "organization_id": 1.0, "project_id": 1.0, "figma_file_key": "itMrdXTfcIHTHbSGK0Ivox", "screen_id": "지점관리_상세",
		"status": "0", "attempt": 1.0, "flag_count": nil, "result_url": nil, "error_message": nil, "materialized_at": nil,
		"created_at": at, "updated_at": at, "deleted_at": nil, "created_by": as.Subject, "updated_by": as.Subject, "deleted_by": nil,
	}
	maps.Copy(want, c.row)
	if diff := cmp.Diff(want, row); diff != "" {
		t.Errorf("the row (-want +got):\n%s", diff)
	}
}

// sentOff checks what a creation leaves beside the row: its first line, its job, its public event and the hint.
func (in *intake) sentOff(t *testing.T, run lifecycle.Run, as servicetest.Principal, stage string) {
	t.Helper()
	lines := in.Timeline(t, run.Ref)
	if len(lines) != 1 {
		t.Fatalf("the timeline is %+v; want one line", lines)
	}
	trace := lines[0].Traceparent
	want := servicetest.Line{What: "created", Outcome: "applied", By: "user", Actor: as.Subject, To: string(run.State), Attempt: 1, Data: "{}", Traceparent: trace}
	if diff := cmp.Diff(want, lines[0]); diff != "" {
		t.Errorf("the timeline (-want +got):\n%s", diff)
	}
	letters := []servicetest.Letter{
		{Destination: "jobs", Stage: &stage, Attempt: 1, State: "pending", Traceparent: trace},
		{Destination: "events", Seq: new(1), Attempt: 1, State: "pending", Traceparent: trace},
	}
	if diff := cmp.Diff(letters, in.Outbox(t, run.Ref)); diff != "" {
		t.Errorf("the outbox (-want +got):\n%s", diff)
	}
}

// The trace that a request belongs to goes on with the job and the event.
func TestCreateHandsTheTraceOn(t *testing.T) {
	t.Parallel()
	in := open(t)
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	reply := in.Send(t, "POST", code2wf, in.Owner,
		`{"figmaFileKey":"k","screenId":"s","pageImportId":"`+platform.PageImportID+`"}`, "Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	run := in.created(t, lifecycle.Code2WF, reply)
	if got := in.LastLine(t, run.Ref).Traceparent; got == nil || !strings.HasPrefix(*got, "00-"+trace+"-") {
		t.Errorf("the timeline's traceparent is %v", got)
	}
	for _, letter := range in.Outbox(t, run.Ref) {
		if letter.Traceparent == nil || !strings.HasPrefix(*letter.Traceparent, "00-"+trace+"-") {
			t.Errorf("the outbox's traceparent is %v", letter.Traceparent)
		}
	}
}

// The seed's word: every valid code2wf request is a new run and a new job.
func TestCode2WFIsNeverDeduplicated(t *testing.T) {
	t.Parallel()
	in := open(t)
	ids := map[string]bool{}
	for range 3 {
		run := in.created(t, lifecycle.Code2WF, in.post(t, code2wf, in.Owner, plainCode2WF))
		ids[run.ID] = true
		if diff := cmp.Diff([]string{"jobs generate", "events 1"}, servicetest.Told(in.Outbox(t, run.Ref))); diff != "" {
			t.Errorf("the outbox (-want +got):\n%s", diff)
		}
	}
	if len(ids) != 3 {
		t.Errorf("three requests made the runs %v", ids)
	}
}

// A caller who runs wild is told to wait, and does not keep others out.
func TestCreateIsLimitedForEachCaller(t *testing.T) {
	t.Parallel()
	w := servicetest.New(t)
	s := &server{store: w.Store, people: w.People, limits: web.NewLimiter(1, 2)}
	c := w.Serve(t, s.routes())
	body := `{"figmaFileKey":"k","screenId":"s","pageImportId":"` + platform.PageImportID + `"}`
	var last servicetest.Reply
	for range 50 { // a token comes back each second
		if last = c.Send(t, "POST", code2wf, w.Owner, body); last.Status != 201 {
			break
		}
	}
	before := w.Content(t)
	last.Refused(t, 429, "rate_limited")
	if last.Header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q", last.Header.Get("Retry-After"))
	}
	if other := c.Send(t, "POST", code2wf, w.Colleague, body); other.Status != 201 {
		t.Errorf("another caller is refused too: %d %s", other.Status, other.Body)
	}
	if maps.Equal(before, w.Content(t)) {
		t.Error("the other caller's run is not there")
	}
}
