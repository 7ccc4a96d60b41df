package main

import (
	"encoding/json/v2"
	"maps"
	"testing"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/store/storetest"
	"framerun.dev/pkg/web"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const (
	wf2des  = "/v1/projects/1/wf2des"
	code2wf = "/v1/projects/1/code2wf"
)

// intake is the service in a world of its own.
type intake struct {
	*servicetest.World
	*servicetest.Client
}

func open(t *testing.T) *intake {
	t.Helper()
	in := &intake{World: servicetest.New(t)}
	s := &server{store: in.Store, people: in.People, limits: web.NewLimiter(0, 0)}
	in.Client = in.Serve(t, s.routes())
	return in
}

// post sends a body that is given as its members.
func (in *intake) post(t *testing.T, path string, as servicetest.Principal, body map[string]any) servicetest.Reply {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return in.Send(t, "POST", path, as, string(text))
}

// with is a copy of body with some members changed; nil takes a member away.
func with(body map[string]any, members ...any) map[string]any {
	body = maps.Clone(body)
	for i := 0; i+1 < len(members); i += 2 {
		name := members[i].(string)
		if body[name] = members[i+1]; members[i+1] == nil {
			delete(body, name)
		}
	}
	return body
}

var (
	plainWF2Des  = map[string]any{"figmaFileKey": "itMrdXTfcIHTHbSGK0Ivox", "wfNodeId": "253:3900", "screenId": "지점관리_상세"}
	plainCode2WF = map[string]any{"figmaFileKey": "itMrdXTfcIHTHbSGK0Ivox", "pageImportId": platform.PageImportID, "screenId": "지점관리_상세"}
)

// created checks a 201 and returns the run that it speaks of, as it is stored.
func (in *intake) created(t *testing.T, kind lifecycle.Kind, reply servicetest.Reply) lifecycle.Run {
	t.Helper()
	if reply.Status != 201 {
		t.Fatalf("got %d %s; want 201", reply.Status, reply.Body)
	}
	id, _ := reply.JSON(t)["id"].(string)
	run, err := in.Store.RunOfAnyTenant(t.Context(), lifecycle.Ref{Kind: kind, ID: id})
	if err != nil {
		t.Fatalf("the run of a 201: %v", err)
	}
	return run
}
