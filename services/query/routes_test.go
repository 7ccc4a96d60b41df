package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"uuid"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
)

// elsewhereRules are the rules of the gateway that do not lead here: a method and an expression each.
func elsewhereRules(t *testing.T) map[string][]*regexp.Regexp {
	t.Helper()
	file, err := os.ReadFile("../../deploy/base/routes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string][]*regexp.Regexp{}
	match := regexp.MustCompile(`method: ([A-Z]+)\s+path:\s+type: RegularExpression\s+value: (\S+)\n`)
	for document := range strings.SplitSeq(string(file), "\n---\n") {
		if strings.Contains(document, "\n  name: query\n") {
			continue
		}
		for _, found := range match.FindAllStringSubmatch(document, -1) {
			rules[found[1]] = append(rules[found[1]], regexp.MustCompile(found[2]))
		}
	}
	if len(rules["POST"]) < 3 || len(rules["DELETE"]) < 1 {
		t.Fatalf("the gateway's rules were not found: %v", rules)
	}
	return rules
}

// The gateway sends here what no other service takes. For each path, Allow names exactly what the gateway would send to another service,
// and what this one answers itself.
func TestAllowIsTrueForTheWholeOrigin(t *testing.T) {
	t.Parallel()
	q := open(t)
	rules := elsewhereRules(t)
	id := uuid.NewV7().String()
	own := map[string]bool{"": true, "/" + id: true, "/" + id + "/timeline": true, "/" + id + "/result": true}
	for _, kind := range lifecycle.Kinds {
		for _, suffix := range []string{"", "/" + id, "/" + id + "/timeline", "/" + id + "/result", "/" + id + "/confirm", "/" + id + "/cancel",
			"/" + id + "/feedback", "/" + id + "/placement", "/" + id + "/requeue", "/" + id + "/progress", "/" + id + "/confirm/x"} {
			path := "/v1/projects/1/" + string(kind) + suffix
			var allowed []string
			for _, method := range []string{"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"} {
				matches := func(r *regexp.Regexp) bool { return r.MatchString(path) }
				if own[suffix] && (method == "GET" || method == "HEAD") || slices.ContainsFunc(rules[method], matches) {
					allowed = append(allowed, method)
				}
			}
			q.allows(t, path, allowed)
		}
	}
}

// allows checks every method that this service does not answer itself.
func (q *query) allows(t *testing.T, path string, allowed []string) {
	t.Helper()
	want := strings.Join(append(allowed, "OPTIONS"), ", ")
	for _, method := range []string{"DELETE", "GET", "PATCH", "POST", "PUT", "BREW", "OPTIONS"} {
		if method == "GET" && slices.Contains(allowed, method) {
			continue
		}
		reply := q.Send(t, method, path, q.Nobody, "")
		switch {
		case len(allowed) == 0:
			reply.Refused(t, 404, "not_found")
		case method == "OPTIONS" && reply.Status != 204:
			t.Errorf("OPTIONS %s: %d", path, reply.Status)
		case method != "OPTIONS":
			reply.Refused(t, 405, "method_not_allowed")
		}
		if got := reply.Header.Get("Allow"); len(allowed) > 0 && got != want {
			t.Errorf("%s %s: Allow is %q; want %q", method, path, got, want)
		}
	}
}

// What is no route is a 404 problem, never a redirect, and workers' webhooks do not come in by the public origin.
func TestWhatIsNoRoute(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Completed)
	one := path(run)
	for _, strange := range []string{
		"/", "/v1", "/v1/ai-status", "//", "/" + one, one + "/", one + "//timeline", one + "/timeline/", "/v1/projects/1/../1/wf2des",
		"/v1/projects/1/wf2des/" + run.ID + "/../" + run.ID, "/v1/projects/1/wf2des%2F" + run.ID, "/v1/projects/1%2Fwf2des", "/V1/projects/1/wf2des",
		"/v1/projects/1/WF2DES", "/v1/projects/1/des2wf", "/v1/projects//wf2des", "/v1/projects/1/%77f2des", one + "%00", one + "%20", "/v1/projects/%31/wf2des",
		"/v1/projects/01/wf2des", "/v1/projects/+1/wf2des", "/v1/projects/0/wf2des", "/v1/projects/-1/wf2des", "/v1/projects/9223372036854775808/wf2des",
		strings.ToUpper(one), "/v1/projects/1/wf2des/" + strings.ToUpper(run.ID), "/v1/projects/1/code2wf/" + run.ID, "/livez", "/metrics",
	} {
		q.Send(t, "GET", strange, q.Owner, "").Refused(t, 404, "not_found")
	}
	q.Send(t, "POST", "/v1/ai-status", q.Owner, "{}").Refused(t, 404, "not_found")
}

// A plugin's iframe has the origin null. Its preflight is answered without a token, for every path, and it may read what it needs of
// every answer, errors too.
func TestBrowsersMayAskFromAnywhere(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Completed)
	for _, path := range []string{path(run), path(run) + "/confirm", wf2des, "/nowhere"} {
		reply := q.Send(t, "OPTIONS", path, q.Nobody, "", "Origin", "null", "Access-Control-Request-Method", "POST",
			"Access-Control-Request-Headers", "authorization,content-type,if-none-match,idempotency-key,prefer,last-event-id")
		allowed := strings.ToLower(reply.Header.Get("Access-Control-Allow-Headers"))
		for _, header := range []string{"authorization", "content-type", "if-none-match", "idempotency-key", "prefer", "last-event-id"} {
			if !strings.Contains(allowed, header) {
				t.Errorf("%s: a preflight does not allow %s", path, header)
			}
		}
		if methods := reply.Header.Get("Access-Control-Allow-Methods"); reply.Status != 204 || !strings.Contains(methods, "DELETE") || !strings.Contains(methods, "POST") {
			t.Errorf("%s: a preflight is answered %d with %v", path, reply.Status, reply.Header)
		}
		if reply.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: credentials are allowed to every page", path)
		}
	}
	for _, as := range []servicetest.Principal{q.Owner, q.Nobody, q.Intruder} {
		exposed := q.Send(t, "GET", path(run), as, "", "Origin", "null").Header.Get("Access-Control-Expose-Headers")
		for _, header := range []string{"ETag", "Location", "Retry-After", "X-Request-Id", "Preference-Applied", "Idempotent-Replayed", "Link"} {
			if !strings.Contains(exposed, header) {
				t.Errorf("%s may not read %s", as.Name, header)
			}
		}
	}
}
