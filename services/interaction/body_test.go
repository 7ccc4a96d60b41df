package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"uuid"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
)

// badBody is a body that is refused, and where.
type badBody struct {
	body    string
	headers []string
	status  int
	code    string
	at      []string
}

func (in *interaction) refusesAll(t *testing.T, method, path string, bodies []badBody) {
	t.Helper()
	for _, b := range bodies {
		reply := in.still(t, func() servicetest.Reply { return in.Send(t, method, path, in.Owner, b.body, b.headers...) })
		problem := reply.Refused(t, b.status, b.code)
		if got := servicetest.Faults(problem); !slices.Equal(got, b.at) {
			t.Errorf("%.80q: the faults are at %q; want %q", b.body, got, b.at)
		}
	}
}

const malformed, invalid = "malformed_request", "invalid_field"

func TestConfirmBodies(t *testing.T) {
	t.Parallel()
	in := open(t)
	run := in.In(t, lifecycle.WF2Des, lifecycle.AwaitingConfirm)
	in.refusesAll(t, "POST", servicetest.Path(run, 1)+"/confirm", []badBody{
		{``, nil, 400, malformed, []string{""}},
		{`[]`, nil, 400, malformed, []string{""}},
		{`null`, nil, 400, malformed, []string{""}},
		{`{}`, nil, 422, invalid, []string{"/decision", "/attempt"}},
		{`{"decision":null,"attempt":null}`, nil, 422, invalid, []string{"/decision", "/attempt"}},
		{`{"decision":"confirm"}`, nil, 422, invalid, []string{"/attempt"}},
		{`{"attempt":1}`, nil, 422, invalid, []string{"/decision"}},
		{`{"decision":"yes","attempt":1}`, nil, 422, invalid, []string{"/decision"}},
		{`{"decision":"","attempt":1}`, nil, 422, invalid, []string{"/decision"}},
		{`{"decision":"Confirm","attempt":1}`, nil, 422, invalid, []string{"/decision"}},
		{`{"decision":"cancel","attempt":1}`, nil, 422, invalid, []string{"/decision"}},
		{`{"decision":"delete","attempt":1}`, nil, 422, invalid, []string{"/decision"}},
		{`{"decision":"confirm","attempt":0}`, nil, 422, invalid, []string{"/attempt"}},
		{`{"decision":"confirm","attempt":-1}`, nil, 422, invalid, []string{"/attempt"}},
		{`{"decision":"confirm","attempt":2147483648}`, nil, 422, invalid, []string{"/attempt"}},
		{`{"decision":"confirm","attempt":9223372036854775808}`, nil, 400, malformed, []string{"/attempt"}},
		{`{"decision":"confirm","attempt":1.5}`, nil, 400, malformed, []string{"/attempt"}},
		{`{"decision":"confirm","attempt":"1"}`, nil, 400, malformed, []string{"/attempt"}},
		{`{"decision":true,"attempt":1}`, nil, 400, malformed, []string{"/decision"}},
		{`{"decision":"confirm","attempt":1,"status":"completed"}`, nil, 400, malformed, []string{"/status"}},
		{`{"decision":"confirm","Attempt":1}`, nil, 400, malformed, []string{"/Attempt"}},
		{`{"decision":"confirm","decision":"reject","attempt":1}`, nil, 400, malformed, []string{"/decision"}},
		{`{"decision":"confirm","attempt":1}`, []string{"Content-Type", "text/plain"}, 415, "unsupported_media_type", nil},
		{`{"decision":"` + strings.Repeat("x", 64<<10) + `"}`, nil, 413, "payload_too_large", nil},
	})
}

func TestFeedbackBodies(t *testing.T) {
	t.Parallel()
	in := open(t)
	run := in.In(t, lifecycle.WF2Des, lifecycle.Completed)
	in.refusesAll(t, "POST", servicetest.Path(run, 1)+"/feedback", []badBody{
		{``, nil, 400, malformed, []string{""}},
		{`{}`, nil, 422, invalid, []string{"/feedbackStatus"}},
		{`{"feedbackStatus":"0"}`, nil, 422, invalid, []string{"/feedbackStatus"}},
		{`{"feedbackStatus":"FIXED"}`, nil, 422, invalid, []string{"/feedbackStatus"}},
		{`{"feedbackStatus":1}`, nil, 400, malformed, []string{"/feedbackStatus"}},
		{`{"feedback_status":"fixed"}`, nil, 400, malformed, []string{"/feedback_status"}},
		{`{"feedbackStatus":"fixed","attempt":1}`, nil, 400, malformed, []string{"/attempt"}},
	})
}

// Verbs that need no words take none: no body, or an empty object.
func TestBodiesOfVerbsThatNeedNone(t *testing.T) {
	t.Parallel()
	in := open(t)
	for _, c := range []struct {
		method, suffix string
		kind           lifecycle.Kind
		state          lifecycle.State
	}{
		{"POST", "/cancel", lifecycle.WF2Des, lifecycle.Parsing},
		{"POST", "/placement", lifecycle.WF2Des, lifecycle.Completed},
		{"POST", "/placement", lifecycle.Code2WF, lifecycle.Completed},
		{"DELETE", "", lifecycle.WF2Des, lifecycle.Failed},
		{"DELETE", "", lifecycle.Code2WF, lifecycle.Completed},
	} {
		t.Run(c.method+" "+string(c.kind)+c.suffix, func(t *testing.T) {
			run := in.In(t, c.kind, c.state)
			path := servicetest.Path(run, 1) + c.suffix
			in.refusesAll(t, c.method, path, []badBody{
				{`[]`, nil, 400, malformed, []string{""}},
				{`null`, nil, 400, malformed, []string{""}},
				{`""`, nil, 400, malformed, []string{""}},
				{`x`, nil, 400, malformed, []string{""}},
				{` `, nil, 400, malformed, []string{""}},
				{`{}{}`, nil, 400, malformed, []string{""}},
				{`{"x":1}`, nil, 400, malformed, []string{"/x"}},
				{`{"status":"cancelled"}`, nil, 400, malformed, []string{"/status"}},
				{`{}`, []string{"Content-Type", "text/plain"}, 415, "unsupported_media_type", nil},
				{`{}`, []string{"Content-Type", ""}, 415, "unsupported_media_type", nil},
				{`{` + strings.Repeat(" ", 70_000) + `}`, nil, 413, "payload_too_large", nil},
			})
			for _, body := range []string{``, `{}`, " {\n} "} {
				in.decide(t, c.method, servicetest.Path(in.In(t, c.kind, c.state), 1)+c.suffix, body)
			}
			in.decide(t, c.method, path, "") // a type without a body says nothing
		})
	}
	run := in.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	reply := in.Send(t, "POST", servicetest.Path(run, 1)+"/cancel", in.Owner, "", "Content-Type", "text/plain")
	if reply.Status != 200 {
		t.Errorf("no body of any type: %d %s", reply.Status, reply.Body)
	}
}

// What is no canonical UUIDv7 names no run, and neither does one that nobody has, one of the other kind, or one under a project
// that it does not belong to.
func TestIDsThatNameNoRun(t *testing.T) {
	t.Parallel()
	in := open(t)
	run, page := in.In(t, lifecycle.WF2Des, lifecycle.Parsing), in.In(t, lifecycle.Code2WF, lifecycle.Completed)
	id := run.ID
	for _, bad := range []string{
		uuid.NewV7().String(), uuid.New().String(), strings.ToUpper(id), "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""),
		id + "%20", id + "%00", "..", "%2e%2e", "1", "'", page.ID,
	} {
		for _, d := range decisions {
			for _, project := range []string{"1", "01", "0", "x", "99999999999999999999"} {
				path := fmt.Sprintf("/v1/projects/%s/wf2des/%s%s", project, bad, d.path)
				in.still(t, func() servicetest.Reply { return in.Send(t, d.method, path, in.Owner, d.body) }).Refused(t, 404, "not_found")
			}
		}
	}
	in.still(t, func() servicetest.Reply {
		return in.Send(t, "POST", "/v1/projects/1/code2wf/"+id+"/placement", in.Owner, "")
	}).Refused(t, 404, "not_found")
}
