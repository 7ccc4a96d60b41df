package main

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/store"
	"framerun.dev/pkg/web"
	"github.com/google/go-cmp/cmp"
)

// Catches a webhook that is taken although it can be read in two ways, or that is refused without saying where.
func TestBodiesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	e := listen(t)
	run := e.In(t, lifecycle.WF2Des, lifecycle.Assembling)
	good := whole(run, completed)
	with := func(more string) string { return strings.TrimSuffix(good, "}") + more + "}" }
	e.unchanged(t, "a body that cannot be read", func() {
		for name, body := range map[string]string{
			"nothing": "", "blank": " ", "an array": "[" + good + "]", "a text": `"completed"`, "null": "null", "cut off": good[:len(good)-1],
			"two of them": good + good, "text after it": good + "x", "a byte order mark": "\uFEFF" + good, "an unknown member": with(`,"status":"completed"`),
			"the row's members": with(`,"error_message":"x"`), "camelCase": with(`,"resultUrl":"x"`), "another case": strings.Replace(good, `"event"`, `"Event"`, 1),
			"a member twice": with(`,"attempt":1`), "twice by an escape": with(`,"\u0061ttempt":1`), "a comment": with(`/* */`), "a trailing comma": with(`,`),
			"single quotes": strings.ReplaceAll(good, `"`, `'`), "broken bytes": strings.Replace(good, "ds@2.0", "ds@\xff", 1),
			"a lone surrogate": strings.Replace(good, "ds@2.0", `ds@\ud800`, 1), "an attempt in words": strings.Replace(good, `"attempt":1`, `"attempt":"1"`, 1),
			"half an attempt": strings.Replace(good, `"attempt":1`, `"attempt":1.5`, 1), "an id that is a number": strings.Replace(good, `"`+run.ID+`"`, "1", 1),
			"an event that is a list": strings.Replace(good, `"completed"`, `["completed"]`, 1), "deep": with(`,"manifest":` + strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)),
			"a manifest that is a text": with(`,"manifest":"oops"`), "an unknown member of it": with(`,"manifest":{"stack":"x"}`),
		} {
			if reply := e.say(t, body); reply.Status != 400 && (body != "" || reply.Status != 415) {
				t.Errorf("%s: got %d %s", name, reply.Status, reply.Body)
			}
		}
	})
	mustTell(t, "the right one", e.say(t, good), answered("applied", lifecycle.Completed, 1, false))
}

// Catches a word about no run, about two, about an attempt or of an event that cannot be; and faults that are not told all at once.
func TestWordsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	e := listen(t)
	run := e.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	e.unchanged(t, "a word that makes no sense", func() {
		for name, tc := range map[string]struct {
			more   members
			faults []string
		}{
			"no id":               {members{"job_id": nil}, []string{"/job_id"}},
			"two ids":             {members{"code2wf_id": run.ID}, []string{"/code2wf_id"}},
			"an empty id":         {members{"job_id": ""}, []string{"/job_id"}},
			"an upper case id":    {members{"job_id": strings.ToUpper(run.ID)}, []string{"/job_id"}},
			"an id in braces":     {members{"job_id": "{" + run.ID + "}"}, []string{"/job_id"}},
			"an urn":              {members{"job_id": "urn:uuid:" + run.ID}, []string{"/job_id"}},
			"a bare id":           {members{"job_id": strings.ReplaceAll(run.ID, "-", "")}, []string{"/job_id"}},
			"SQL":                 {members{"job_id": "' OR 1=1 --"}, []string{"/job_id"}},
			"a code2wf id, odd":   {members{"job_id": nil, "code2wf_id": "x"}, []string{"/code2wf_id"}},
			"no attempt":          {members{"attempt": nil}, []string{"/attempt"}},
			"attempt 0":           {members{"attempt": 0}, []string{"/attempt"}},
			"attempt -1":          {members{"attempt": -1}, []string{"/attempt"}},
			"attempt 2^31":        {members{"attempt": 1 << 31}, []string{"/attempt"}},
			"no event":            {members{"event": nil}, []string{"/event"}},
			"an unknown event":    {members{"event": "cancelled"}, []string{"/event"}},
			"an event's cousin":   {members{"event": "Parsed"}, []string{"/event"}},
			"nothing is right":    {members{"event": "x", "attempt": 0, "job_id": nil}, []string{"/job_id", "/attempt", "/event"}},
			"all of a result":     {members{"event": "completed", "flag_count": -1, "score": 2, "score_version": strings.Repeat("x", 33)}, []string{"/result_url", "/flag_count", "/score", "/score_version"}},
			"a failure of no run": {members{"event": "failed", "job_id": nil}, []string{"/job_id"}},
		} {
			p := e.say(t, about(run, parsed, tc.more)).Refused(t, 422, "invalid_field")
			if diff := cmp.Diff(tc.faults, servicetest.Faults(p)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	})
}

// Catches a body of another type or beyond 256 KiB that is read, and a route that answers what it should not.
func TestOtherRequests(t *testing.T) {
	t.Parallel()
	e := listen(t)
	run := e.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	good := whole(run, parsed)
	e.unchanged(t, "another request", func() {
		for name, tc := range map[string]struct {
			change func(*http.Request)
			status int
			code   string
		}{
			"text":         {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415, "unsupported_media_type"},
			"no type":      {func(r *http.Request) { r.Header.Del("Content-Type") }, 415, "unsupported_media_type"},
			"gzip":         {func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }, 415, "unsupported_media_type"},
			"GET":          {func(r *http.Request) { r.Method = "GET" }, 405, "method_not_allowed"},
			"PUT":          {func(r *http.Request) { r.Method = "PUT" }, 405, "method_not_allowed"},
			"a slash":      {func(r *http.Request) { r.URL.Path += "/" }, 404, "not_found"},
			"two slashes":  {func(r *http.Request) { r.URL.Opaque = "//v1//ai-status" }, 404, "not_found"},
			"a run's path": {func(r *http.Request) { r.URL.Path = servicetest.Path(run, 1) + "/cancel" }, 404, "not_found"},
		} {
			r := e.signed(t, good)
			tc.change(r)
			reply, err := e.Try(r)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			reply.Refused(t, tc.status, tc.code)
		}
		pad := func(n int) string { return good[:len(good)-1] + strings.Repeat(" ", n-len(good)) + "}" }
		e.say(t, pad(256<<10+1)).Refused(t, 413, "payload_too_large")
	})
	mustTell(t, "256 KiB", e.say(t, good[:len(good)-1]+strings.Repeat(" ", 256<<10-len(good))+"}"), answered("applied", lifecycle.AwaitingConfirm, 1, true))
}

// Catches a word of somebody who does not know the secret, or of yesterday, that is believed, or that costs a look into PostgreSQL.
func TestSignatures(t *testing.T) {
	t.Parallel()
	first, second, removed := secret(), secret(), secret()
	e := listenOn(t, servicetest.New(t), web.Options{NoCORS: true}, first, second)
	run := e.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	body := whole(run, progress)
	signed := func(secret string, age time.Duration) http.Header {
		return webhooks(t, secret).Sign("msg_1", time.Now().Add(-age), []byte(body))
	}
	set := func(h http.Header, name, value string) http.Header { h.Set(name, value); return h }
	without := func(h http.Header, name string) http.Header { h.Del(name); return h }
	bearer := http.Header{"Authorization": {"Bearer " + e.Owner.Token}}

	down, err := store.Open("postgres://127.0.0.1:1/none?sslmode=disable", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { down.Close() })
	e.server.store = down // whoever gets as far as PostgreSQL is told 503
	for name, tc := range map[string]struct {
		header http.Header
		status int
	}{
		"the first secret":       {signed(first, 0), 503},
		"the second":             {signed(second, 0), 503},
		"an old one, removed":    {signed(removed, 0), 401},
		"both, old one first":    {set(signed(first, 0), "webhook-signature", signed(removed, 0).Get("webhook-signature")+" "+signed(second, 0).Get("webhook-signature")), 503},
		"290 s old":              {signed(first, 290*time.Second), 503},
		"301 s old":              {signed(first, 301*time.Second), 401},
		"301 s ahead":            {signed(first, -302*time.Second), 401},
		"of another time":        {set(signed(first, 0), "webhook-timestamp", "1"), 401},
		"of another message":     {set(signed(first, 0), "webhook-id", "msg_2"), 401},
		"no id":                  {without(signed(first, 0), "webhook-id"), 401},
		"no timestamp":           {without(signed(first, 0), "webhook-timestamp"), 401},
		"no signature":           {without(signed(first, 0), "webhook-signature"), 401},
		"nothing":                {http.Header{}, 401},
		"a user's token":         {bearer, 401},
		"a token as a signature": {set(signed(first, 0), "webhook-signature", "v1,"+e.Owner.Token), 401},
		"an empty signature":     {set(signed(first, 0), "webhook-signature", "v1,"), 401},
		"another version":        {set(signed(first, 0), "webhook-signature", strings.Replace(signed(first, 0).Get("webhook-signature"), "v1,", "v2,", 1)), 401},
	} {
		r := e.Request(t, "POST", "/v1/ai-status", servicetest.Principal{}, body)
		maps.Copy(r.Header, tc.header)
		reply, err := e.Try(r)
		if err != nil {
			t.Fatal(err)
		}
		if reply.Status != tc.status || strings.Contains(reply.Body, first) {
			t.Errorf("%s: got %d %s, want %d", name, reply.Status, reply.Body, tc.status)
		}
	}
	for _, changed := range []string{body + " ", strings.Replace(body, "progress", "failed", 1), ""} {
		r := e.Request(t, "POST", "/v1/ai-status", servicetest.Principal{}, changed)
		maps.Copy(r.Header, signed(first, 0))
		if reply, err := e.Try(r); err != nil || !slices.Contains([]int{401, 415}, reply.Status) {
			t.Errorf("%q with the signature of another: %d %v", changed, reply.Status, err)
		}
	}
}
