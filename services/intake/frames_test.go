package main

import (
	"encoding/json/v2"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"framerun.dev/pkg/jobs"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
)

// frame is a layer of a real file.
type frame struct {
	FileKey string `json:"figmaFileKey"`
	NodeID  string `json:"nodeId"`
	Name    string `json:"name"`
}

// screen is the name as far as a screen id can hold it; the prompt holds more.
func (f frame) screen() string {
	runes := []rune(f.Name)
	return string(runes[:min(len(runes), maxText)])
}

// node is the canonical form of the frame's node id; some of the collection stand as in a link.
func (f frame) node() string {
	if strings.Contains(f.NodeID, ":") {
		return f.NodeID
	}
	return strings.Replace(f.NodeID, "-", ":", 1)
}

// body is a request for the frame.
func (f frame) body(kind lifecycle.Kind) map[string]any {
	if kind == lifecycle.Code2WF {
		return with(plainCode2WF, "figmaFileKey", f.FileKey, "placementTarget", f.NodeID, "screenId", f.screen())
	}
	return map[string]any{"figmaFileKey": f.FileKey, "wfNodeId": f.NodeID, "placementTarget": f.NodeID, "screenId": f.screen(), "prompt": f.Name}
}

// frames are layers of real files, whose names hold what people type: controls, spaces at the ends, private-use and odd characters.
// Characters that none of them holds are added.
func frames(t *testing.T) []frame {
	t.Helper()
	file, err := os.ReadFile("../../pkg/figma/testdata/figma-frames.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []frame
	if err := json.Unmarshal(file, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("only %d frames", len(all))
	}
	for i, name := range []string{" ", "\u2028\u2029", "\uffff\ufffe", "\x01\x1f\x7f\u0085", "\ufeff", "</script>&\"'\\", "e\u0301é", "\U0010ffff", "null"} {
		all = append(all, frame{FileKey: "odd", NodeID: fmt.Sprint("9:", i), Name: name})
	}
	return all
}

// The names of real layers come through the whole service unchanged: answered, stored, and told to the worker.
func TestRealFramesReachTheWorkerExactly(t *testing.T) {
	w := servicetest.New(t)
	service, queue := start(t, w)
	asked := map[string]frame{} // by the id of the run
	for _, f := range frames(t) {
		for _, kind := range lifecycle.Kinds {
			text, err := json.Marshal(f.body(kind))
			if err != nil {
				t.Fatal(err)
			}
			reply := service.Send(t, "POST", "/v1/projects/1/"+string(kind), w.Owner, string(text))
			if reply.Status == 409 { // the collection holds some nodes twice
				continue
			}
			if reply.Status != 201 {
				t.Fatalf("%+v: %d %s", f, reply.Status, reply.Body)
			}
			run := lifecycle.Ref{Kind: kind, ID: reply.JSON(t)["id"].(string)}
			asked[run.ID] = f
			f.check(t, kind, reply.JSON(t), w.Row(t, run))
		}
	}
	if len(asked) < 160 {
		t.Fatalf("only %d runs were made", len(asked))
	}
	servicetest.Eventually(t, "every job has reached the queue", func() bool { return len(queue.bodies()) >= len(asked) })
	for _, raw := range queue.bodies() {
		var m jobs.Message
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			t.Fatal(err)
		}
		f, ok := asked[m.JobID+m.Code2WFID]
		if !ok {
			t.Errorf("a job of an unknown run: %s", raw)
			continue
		}
		f.checkMessage(t, raw, m)
	}
}

// check compares what was answered and stored with what was asked for.
func (f frame) check(t *testing.T, kind lifecycle.Kind, resource, row map[string]any) {
	t.Helper()
	want := map[string]any{"screenId": f.screen(), "screen_id": f.screen(), "figmaFileKey": f.FileKey, "figma_file_key": f.FileKey,
		"placementTarget": f.node(), "placement_target": f.node()}
	if kind == lifecycle.WF2Des {
		maps.Copy(want, map[string]any{"prompt": f.Name, "wfNodeId": f.node(), "wf_node_id": f.node()})
	}
	for name, value := range want {
		got, answered := resource[name]
		if !answered || name == "prompt" && row[name] != value {
			got = row[name]
		}
		if got != value {
			t.Errorf("%s: %q became %q", name, value, got)
		}
	}
}

// checkMessage compares what a worker is told with what was asked for.
func (f frame) checkMessage(t *testing.T, raw string, m jobs.Message) {
	t.Helper()
	for _, r := range raw {
		if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff {
			t.Errorf("SQS would refuse %U in %q", r, raw)
		}
	}
	if m.ScreenID != f.screen() || m.FigmaFileKey != f.FileKey || m.PlacementTarget == nil || *m.PlacementTarget != f.node() {
		t.Errorf("%+v was told as %s", f, raw)
	}
	if m.Kind == lifecycle.WF2Des && (*m.Prompt != f.Name || *m.WFNodeID != f.node() || m.Stage != lifecycle.StageParse) {
		t.Errorf("%+v was told as %s", f, raw)
	}
	if m.StatusURL != "http://status.example/v1/ai-status" || m.ResultPrefix != string(m.Kind)+"/"+m.JobID+m.Code2WFID+"/1/" {
		t.Errorf("the worker is told to answer to %s and %s", m.StatusURL, m.ResultPrefix)
	}
}
