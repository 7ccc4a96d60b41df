package jobs_test

import (
	"encoding/json/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"framerun.dev/pkg/lifecycle"
	"github.com/google/go-cmp/cmp"
)

func asCode2WF(j *lifecycle.Job) {
	j.Run.Kind, j.Run.PageImportID, j.Run.WFNodeID, j.Run.Edge = lifecycle.Code2WF, "page", "", ""
	j.Stage = lifecycle.StageGenerate
}

// Catches a member that a worker needs and that is missing, misnamed, of another run, or null where the row has a value.
func TestMessageTellsTheRow(t *testing.T) {
	t.Parallel()
	rest := map[string]any{
		"schema": "framerun.job/1", "organization_id": 7., "project_id": 11., "figma_file_key": "file", "screen_id": "screen",
		"prompt": nil, "placement_target": nil, "page_import_id": nil, "status_url": "https://status.example/v1/ai-status",
		"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}
	wf2des := map[string]any{"job_id": runID(1), "kind": "wf2des", "wf_node_id": "1:2"}
	for name, tc := range map[string]struct {
		change func(*lifecycle.Job)
		want   map[string]any
	}{
		"parse": {func(j *lifecycle.Job) { j.Run.Prompt, j.Run.PlacementTarget = new("make it blue"), new("3:4") }, merged(wf2des, map[string]any{
			"edge": "wf2des", "stage": "parse", "attempt": 1., "prompt": "make it blue", "placement_target": "3:4",
			"auto_confirm": "normal", "result_prefix": "wf2des/" + runID(1) + "/1/"})},
		"assemble of a second attempt": {func(j *lifecycle.Job) {
			j.Stage, j.Attempt, j.Run.Attempt, j.Run.Edge = lifecycle.StageAssemble, 2, 2, lifecycle.EdgeDes2WF
		}, merged(wf2des, map[string]any{
			"edge": "des2wf", "stage": "assemble", "attempt": 2., "auto_confirm": "normal", "result_prefix": "wf2des/" + runID(1) + "/2/"})},
		"auto confirm": {func(j *lifecycle.Job) { j.Run.AutoConfirm = true }, merged(wf2des, map[string]any{
			"edge": "wf2des", "stage": "parse", "attempt": 1., "auto_confirm": "auto_confirm", "result_prefix": "wf2des/" + runID(1) + "/1/"})},
		"generate": {asCode2WF, map[string]any{
			"code2wf_id": runID(1), "kind": "code2wf", "edge": nil, "wf_node_id": nil, "auto_confirm": nil, "page_import_id": "page",
			"stage": "generate", "attempt": 1., "result_prefix": "code2wf/" + runID(1) + "/1/"}},
	} {
		q := newQueue(t, nil)
		if errs := q.sender().Send(t.Context(), []lifecycle.Job{job(1, tc.change)}); errs[0] != nil {
			t.Fatalf("%s: %v", name, errs[0])
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(q.entries()[0].MessageBody), &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(merged(rest, tc.want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func merged(first, then map[string]any) map[string]any {
	all := map[string]any{}
	for _, m := range []map[string]any{first, then} {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

// Catches a character of a layer's name that SQS would refuse, and one that does not arrive as it was.
func TestAnyCharacterPassesTheQueueUnchanged(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for r := rune(1); r <= 0xFFFF; r++ {
		if utf8.ValidRune(r) {
			all.WriteRune(r)
		}
	}
	all.WriteString("\U0001F469\u200D\U0001F680 e\u0301 \U0001FFFE\U0010FFFF \\uffff \\\uFFFF \\\\\uFFFE </x>&amp;")
	name := all.String()
	q := newQueue(t, nil)
	errs := q.sender().Send(t.Context(), []lifecycle.Job{job(1, func(j *lifecycle.Job) { j.Run.ScreenID, j.Run.Prompt = name, &name })})
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	body := q.entries()[0].MessageBody
	for _, r := range body {
		if !inXML(r) {
			t.Errorf("the message holds U+%04X, which SQS refuses", r)
		}
	}
	var got struct {
		ScreenID string `json:"screen_id"`
		Prompt   string `json:"prompt"`
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || got.ScreenID != name || got.Prompt != name {
		t.Errorf("the names did not arrive as they were (%v)", err)
	}
}

// inXML is the Char production of XML 1.0, which the documentation of SQS names as what a message may hold.
func inXML(r rune) bool {
	return r == 0x9 || r == 0xA || r == 0xD || 0x20 <= r && r <= 0xD7FF || 0xE000 <= r && r <= 0xFFFD || 0x10000 <= r && r <= 0x10FFFF
}
