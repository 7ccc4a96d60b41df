package main

import (
	"encoding/json/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
)

// An open run of the node is named in the refusal, in whatever spelling the node is asked for.
func TestOpenRunIsNamed(t *testing.T) {
	t.Parallel()
	in := open(t)
	standing := in.created(t, lifecycle.WF2Des, in.post(t, wf2des, in.Owner, plainWF2Des))
	for _, step := range []struct {
		verb    lifecycle.Verb // taken before
		phase   string
		actions []any
	}{
		{"", "parse", []any{"cancel"}},
		{lifecycle.Parsed, "awaiting_confirm", []any{"confirm", "reject", "cancel"}},
		{lifecycle.Confirm, "assemble", []any{"cancel"}},
	} {
		if step.verb != "" {
			standing = in.Step(t, standing, step.verb).Run
		}
		for _, node := range []string{"253:3900", "253-3900"} {
			var reply servicetest.Reply
			problem := in.refused(t, func() servicetest.Reply {
				reply = in.post(t, wf2des, in.Colleague, with(plainWF2Des, "wfNodeId", node, "screenId", "another", "prompt", "other"))
				return reply
			}, 409, "open_run")
			delete(problem, "requestId")
			delete(problem, "title")
			delete(problem, "detail")
			want := map[string]any{
				"type": "/problems/open_run", "status": 409.0, "code": "open_run", "existingId": standing.ID, "runStatus": "processing",
				"phase": step.phase, "attempt": 1.0, "createdAt": standing.CreatedAt.Format("2006-01-02T15:04:05.000000Z"), "nextActions": step.actions,
			}
			if diff := cmp.Diff(want, problem); diff != "" {
				t.Errorf("the problem (-want +got):\n%s", diff)
			}
			if got := reply.Header.Get("Location"); got != wf2des+"/"+standing.ID {
				t.Errorf("Location is %q", got)
			}
		}
	}
}

// Whichever of its spellings a node is asked for first, it is stored, answered and named in its one canonical form, and every other
// spelling meets the same open run.
func TestOneNodeInEverySpelling(t *testing.T) {
	t.Parallel()
	in := open(t)
	for _, c := range []struct{ canonical, link string }{
		{"12:34", "12-34"}, {"0:1", "0-1"}, {"I5:6;7:8", "I5-6;7-8"}, {"I5:6;7:8;9:10", "I5-6;7-8;9-10"}, {"-1:2", "-1-2"}, {"1:-2", "1--2"},
		{"-1:-2", "-1--2"}, {"I-1:-2;3:-4", "I-1--2;3--4"}, {"3:4;5:6", "3-4;5-6"},
	} {
		for _, order := range [][2]string{{c.canonical, c.link}, {c.link, c.canonical}} {
			body := with(plainWF2Des, "figmaFileKey", "from "+order[0], "wfNodeId", order[0], "placementTarget", order[1])
			reply := in.post(t, wf2des, in.Owner, body)
			run := in.created(t, lifecycle.WF2Des, reply)
			answered, row := reply.JSON(t), in.Row(t, run.Ref)
			for _, said := range []any{answered["wfNodeId"], answered["placementTarget"], row["wf_node_id"], row["placement_target"]} {
				if said != c.canonical {
					t.Errorf("%q is answered with %s and stored as %v", order, reply.Body, row)
				}
			}
			for _, spelling := range order {
				again := in.post(t, wf2des, in.Owner, with(body, "wfNodeId", spelling))
				if got := again.Refused(t, 409, "open_run")["existingId"]; got != run.ID {
					t.Errorf("%q after %q: the refusal names %v; want %s", spelling, order[0], got, run.ID)
				}
			}
		}
	}
}

// Only the same node, file, edge and project is taken: an ancestor, a sublayer or the way back is not.
func TestOpenRunBlocksNothingElse(t *testing.T) {
	t.Parallel()
	in := open(t)
	in.created(t, lifecycle.WF2Des, in.post(t, wf2des, in.Owner, with(plainWF2Des, "wfNodeId", "I5:6;7:8")))
	for name, body := range map[string]map[string]any{
		"the other edge":    with(plainWF2Des, "wfNodeId", "I5:6;7:8", "edge", "des2wf"),
		"another file":      with(plainWF2Des, "wfNodeId", "I5:6;7:8", "figmaFileKey", "itMrdXTfcIHTHbSGK0IvoX"),
		"the instance":      with(plainWF2Des, "wfNodeId", "I5:6"),
		"the plain node":    with(plainWF2Des, "wfNodeId", "5:6"),
		"a deeper sublayer": with(plainWF2Des, "wfNodeId", "I5:6;7:8;9:10"),
		"the main's layer":  with(plainWF2Des, "wfNodeId", "7:8"),
	} {
		t.Run(name, func(t *testing.T) {
			in.created(t, lifecycle.WF2Des, in.post(t, wf2des, in.Owner, body))
		})
	}
	other := in.post(t, "/v1/projects/2/wf2des", in.OtherProject, with(plainWF2Des, "wfNodeId", "I5:6;7:8"))
	in.created(t, lifecycle.WF2Des, other)
}

// Whichever way a run ends, its node is free again at once.
func TestEndedRunFreesItsNode(t *testing.T) {
	t.Parallel()
	in := open(t)
	for _, state := range servicetest.StatesOf(lifecycle.WF2Des) {
		if state.Open() {
			continue
		}
		t.Run(string(state), func(t *testing.T) {
			first := in.In(t, lifecycle.WF2Des, state)
			second := in.created(t, lifecycle.WF2Des, in.post(t, wf2des, in.Owner, with(plainWF2Des, "wfNodeId", first.WFNodeID)))
			if second.ID == first.ID || second.State != lifecycle.Parsing {
				t.Errorf("the new run is %+v", second)
			}
			again := in.refused(t, func() servicetest.Reply {
				return in.post(t, wf2des, in.Owner, with(plainWF2Des, "wfNodeId", first.WFNodeID))
			}, 409, "open_run")
			if again["existingId"] != second.ID {
				t.Errorf("the refusal names %v; want the new run %s", again["existingId"], second.ID)
			}
		})
	}
}

// Of many who ask at once for one node one is answered 201, and the others are named that run.
func TestManyAskForOneNode(t *testing.T) {
	t.Parallel()
	in := open(t)
	body, err := json.Marshal(plainWF2Des)
	if err != nil {
		t.Fatal(err)
	}
	const many = 30
	replies, errs := make([]servicetest.Reply, many), make([]error, many)
	start := make(chan struct{})
	var asking sync.WaitGroup
	for i := range many {
		r := in.Request(t, "POST", wf2des, in.Owner, string(body))
		asking.Go(func() {
			<-start
			replies[i], errs[i] = in.Try(r)
		})
	}
	close(start)
	asking.Wait()
	var winner string
	for i, reply := range replies {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if reply.Status == 201 {
			if winner != "" {
				t.Error("two were answered 201")
			}
			winner = reply.JSON(t)["id"].(string)
		}
	}
	for _, reply := range replies {
		if reply.Status == 201 {
			continue
		}
		if got := reply.Refused(t, 409, "open_run")["existingId"]; got != winner {
			t.Errorf("a refusal names %v; want %s", got, winner)
		}
	}
}

// A refusal names a run that was open while the request ran, however quickly runs of the node come and go.
func TestRunsComeAndGoWhileOthersAsk(t *testing.T) {
	t.Parallel()
	in := open(t)
	body, err := json.Marshal(plainWF2Des)
	if err != nil {
		t.Fatal(err)
	}
	var asking sync.WaitGroup
	const askers, times = 4, 25
	replies := make(chan servicetest.Reply, askers*times)
	for range askers {
		asking.Go(func() {
			for range times {
				reply, err := in.Try(in.Request(t, "POST", wf2des, in.Owner, string(body)))
				if err != nil {
					t.Error(err)
					return
				}
				replies <- reply
				if reply.Status == 201 {
					in.cancel(t, reply)
				}
			}
		})
	}
	asking.Wait()
	close(replies)
	for reply := range replies {
		if reply.Status == 201 {
			continue
		}
		id, _ := reply.Refused(t, 409, "open_run")["existingId"].(string)
		lines := in.Timeline(t, lifecycle.Ref{Kind: lifecycle.WF2Des, ID: id})
		if len(lines) == 0 || lines[0].What != "created" {
			t.Errorf("a refusal names %q, which never was", id)
		}
	}
}

// cancel ends the run of a 201.
func (in *intake) cancel(t *testing.T, reply servicetest.Reply) {
	t.Helper()
	var run struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(reply.Body), &run); err != nil {
		t.Error(err)
		return
	}
	_, err := in.Store.Apply(t.Context(), lifecycle.Command{Verb: lifecycle.Cancel, Run: lifecycle.Ref{Kind: lifecycle.WF2Des, ID: run.ID},
		Tenant: &servicetest.Tenant, By: lifecycle.Actor{Voice: lifecycle.User, Name: in.Owner.Subject}})
	if err != nil {
		t.Error(err)
	}
}

// Times of the answer are PostgreSQL's and in the order of the requests.
func TestTimesRise(t *testing.T) {
	t.Parallel()
	in := open(t)
	var last time.Time
	for range 5 {
		run := in.created(t, lifecycle.Code2WF, in.post(t, code2wf, in.Owner, plainCode2WF))
		if !run.CreatedAt.After(last) || !run.UpdatedAt.Equal(run.CreatedAt) {
			t.Errorf("created at %s, updated at %s, after one of %s", run.CreatedAt, run.UpdatedAt, last)
		}
		last = run.CreatedAt
	}
}
