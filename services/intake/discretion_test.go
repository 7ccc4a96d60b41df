package main

import (
	"encoding/json/v2"
	"fmt"
	"strings"
	"testing"

	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/web"
)

// What a person writes stays out of the log, whatever becomes of the request, and no text of theirs makes a line of its own there.
func TestTheLogHoldsNothingOfWhatWasWritten(t *testing.T) {
	t.Parallel()
	w := servicetest.New(t)
	var log servicetest.Log
	s := &server{store: w.Store, people: w.People, limits: web.NewLimiter(0, 0)}
	c := w.ServeWith(t, s.routes(), web.Options{Logger: log.Logger()})
	const forged = "\n{\"level\":\"ERROR\",\"msg\":\"canary\"}\r\n\u2028canary"
	text := func(members ...any) string {
		body, err := json.Marshal(with(plainWF2Des, members...))
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	good := text("screenId", "canary"+forged, "prompt", "canary"+forged, "figmaFileKey", "canary")
	for _, asked := range []struct {
		path, body string
		as         servicetest.Principal
		headers    []string
		status     int
	}{
		{wf2des, good, w.Owner, nil, 201},
		{wf2des, good, w.Colleague, nil, 409},
		{wf2des + "/canary", good, w.Owner, nil, 404},
		{"/v1/projects/canary%0Acanary/wf2des", good, w.Owner, nil, 404},
		{wf2des + "?token=canary&prompt=canary%0A", text("wfNodeId", "7:7"), w.Owner, nil, 201},
		{wf2des, text("canary\n", forged), w.Owner, nil, 400},
		{wf2des, text("wfNodeId", "canary\n1"), w.Owner, nil, 422},
		{wf2des, text("prompt", "canary\x00"), w.Owner, nil, 422},
		{wf2des, good, w.Owner, []string{"Content-Type", "text/canary"}, 415},
		{wf2des, good, w.Owner, []string{"Idempotency-Key", "canary canary"}, 400},
		{wf2des, good, servicetest.Principal{Token: "canary.canary.canary"}, []string{"User-Agent", "canary", "Referer", "canary", "Cookie", "canary"}, 401},
		{wf2des, good, w.Unknown, nil, 403},
		{wf2des, good, w.Intruder, []string{"Origin", "canary", "X-Forwarded-For", "canary", "Forwarded", "for=canary"}, 404},
		{wf2des, good, w.Worker, []string{"X-Request-Id", "canary canary", "Traceparent", "canary"}, 401},
	} {
		reply := c.Send(t, "POST", asked.path, asked.as, asked.body, asked.headers...)
		if reply.Status != asked.status {
			t.Errorf("%s %.80q: %d %s; want %d", asked.path, asked.body, reply.Status, reply.Body, asked.status)
		}
	}
	log.Lines(t, 14)
	for _, secret := range []string{"canary", w.Owner.Token, w.Unknown.Token, w.Intruder.Token, "v1,", "지점관리"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log holds %q:\n%s", secret, log.String())
		}
	}
}

// While others have open runs of the same node, and everything in those runs tells whose they are, a refusal tells of one's own run alone.
func TestARefusalTellsNothingOfOtherTenants(t *testing.T) {
	t.Parallel()
	in := open(t)
	in.Plant(t)
	in.SQL.MustExec(`UPDATE wf2des SET figma_file_key = 'shared', wf_node_id = '1:7' WHERE phase = '0'`) // one in each project
	body := map[string]any{"figmaFileKey": "shared", "wfNodeId": "1-7", "screenId": "s"}
	for _, p := range []servicetest.Principal{in.Owner, in.OtherProject, in.OtherOrganization} {
		reply := in.post(t, fmt.Sprintf("/v1/projects/%d/wf2des", p.ProjectID), p, body)
		standing, _ := reply.Refused(t, 409, "open_run")["existingId"].(string)
		in.Silent(t, reply, p.ProjectID)
		var project int64
		if err := in.SQL.Get(&project, `SELECT project_id FROM wf2des WHERE id = $1`, standing); err != nil || project != p.ProjectID {
			t.Errorf("%s is told of a run of project %d (%v)", p.Name, project, err)
		}
	}
	for _, p := range []servicetest.Principal{in.Intruder, in.Unknown, in.Nobody} {
		in.Silent(t, in.post(t, wf2des, p, body), 0)
	}
	imports := with(plainCode2WF, "pageImportId", servicetest.Canary(3)+"key")
	for _, p := range []servicetest.Principal{in.Owner, in.OtherProject} {
		reply := in.post(t, fmt.Sprintf("/v1/projects/%d/code2wf", p.ProjectID), p, imports)
		reply.Refused(t, 422, "invalid_field")
	}
}
