package fuzz

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// shape is what kind of document an answer holds.
type shape int

const (
	nothing shape = iota
	aProblem
	aRun
	aList
	aTimeline
	aResult
	aWord // told to a worker
	anEvent
)

var (
	statuses = []string{"processing", "completed", "failed", "rejected", "cancelled"}
	phases   = []string{"parse", "awaiting_confirm", "assemble"}
	states   = []string{"parsing", "awaiting_confirm", "assembling", "processing", "completed", "failed", "rejected", "cancelled"}
	outcomes = []string{"applied", "duplicate", "superseded", "already_terminal"}
	actions  = []string{"confirm", "reject", "cancel", "place", "feedback", "delete"}

	// routeForm is every path of the people's routes, in its one spelling.
	routeForm = regexp.MustCompile(`^/v1/projects/([1-9]\d{0,18})/(wf2des|code2wf)(?:/([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})(?:/([a-z]+))?)?$`)
)

// good judges a 2xx with a body: which document it must be follows from the path alone.
func (v *verdict) good(r *Request, reply *Reply) {
	if reply.Header.Get("Content-Type") == "text/event-stream" {
		v.event(reply)
		return
	}
	if kind := reply.Header.Get("Content-Type"); kind != "application/json" {
		v.say("the answer is %q: %.200q", kind, reply.Body)
		return
	}
	v.said = read(reply.Body, &v.problems)
	route := routeForm.FindStringSubmatch(r.path())
	switch {
	case r.path() == "/v1/ai-status":
		v.shape = aWord
		v.word()
	case route == nil:
		v.say("a path that is no route was answered with %d", reply.Status)
	case r.Method == http.MethodGet && route[3] == "":
		v.shape = aList
		v.list(reply, route[2])
	case r.Method == http.MethodGet && route[4] == "timeline":
		v.shape = aTimeline
		v.timeline()
	case r.Method == http.MethodGet && route[4] == "result":
		v.shape = aResult
		v.result(route[2], route[3])
	default:
		v.shape = aRun
		v.deleted = r.Method == http.MethodDelete
		v.run(v.said, route[1], route[2])
		v.runHeaders(reply)
	}
}

var shared = []string{"kind", "id", "organizationId", "projectId", "figmaFileKey", "screenId", "placementTarget", "status", "attempt",
	"flagCount", "resultUrl", "errorMessage", "materializedAt", "createdAt", "updatedAt", "createdBy", "updatedBy", "done", "nextActions",
	"links", "progress?"}

var members = map[string][]string{
	"wf2des": append([]string{"wf2desId", "wfNodeId", "edge", "prompt", "autoConfirm", "triggerSurface", "phase", "feedbackStatus",
		"score", "scoreVersion"}, shared...),
	"code2wf": append([]string{"code2wfId", "pageImportId"}, shared...),
}

// run judges one run as it is shown.
func (v *verdict) run(d document, project, kind string) {
	d.only(members[kind]...)
	status := d.word("status", statuses...)
	if d.text("kind") != kind || string(d.members["projectId"]) != project || d.text(kind+"Id") != d.text("id") {
		d.say("the run is of another path: kind %s, project %s, id %s", d.members["kind"], d.members["projectId"], d.members["id"])
	}
	if open := status == "processing"; open == d.yes("done") || open && (!d.null("resultUrl") || !d.null("errorMessage")) {
		d.say("the run is %s: done %s, resultUrl %s, errorMessage %s", status, d.members["done"], d.members["resultUrl"], d.members["errorMessage"])
	}
	if status == "completed" && d.null("resultUrl") || status == "failed" && d.text("errorMessage") == "" {
		d.say("a run that is %s does not say how it ended", status)
	}
	if d.time("updatedAt").Before(d.time("createdAt")) {
		d.say("the run changed before it was made")
	}
	if !d.null("materializedAt") && (d.time("materializedAt").IsZero() || status != "completed") {
		d.say("a run that is %s was placed", status)
	}
	d.number("attempt", 1, 1<<31-1)
	d.number("flagCount", 0, 1<<31-1)
	if kind == "wf2des" {
		v.design(d, status)
	}
	v.next(d)
}

// design judges what only wf2des runs have.
func (v *verdict) design(d document, status string) {
	if (status == "processing") == d.null("phase") {
		d.say("status %s with phase %s", status, d.members["phase"])
	}
	if !d.null("phase") {
		d.word("phase", phases...)
	}
	d.word("edge", "wf2des", "des2wf")
	d.word("autoConfirm", "normal", "auto_confirm")
	d.word("triggerSurface", "plugin", "api")
	if d.number("score", 0, 1); !d.null("score") && !scoreForm.Match(d.members["score"]) {
		d.say("score is %s", d.members["score"])
	}
	if !d.null("feedbackStatus") {
		d.word("feedbackStatus", "fixed", "adopted")
	}
}

var scoreForm = regexp.MustCompile(`^(0|1|0\.\d{1,4}|1e-0?4)$`)

// next judges what can be done next, and whether the links say the same.
func (v *verdict) next(d document) {
	self := fmt.Sprintf("/v1/projects/%s/%s/%s", d.members["projectId"], d.text("kind"), d.text("id"))
	links := read(d.members["links"], d.problems)
	if v.deleted { // it leads nowhere
		if len(links.members) > 0 || len(d.texts("nextActions")) > 0 {
			d.say("a deleted run leads on: %s, %s", d.members["links"], d.members["nextActions"])
		}
		return
	}
	if links.text("self") != self || links.text("timeline") != self+"/timeline" {
		d.say("the links are %s", d.members["links"])
	}
	for _, action := range d.texts("nextActions") {
		if !slices.Contains(actions, action) || !strings.HasPrefix(links.text(action), self) {
			d.say("the next action %q has the link %q", action, links.text(action))
		}
	}
}

// runHeaders go with every run: its version, and when to ask again while it is open.
func (v *verdict) runHeaders(reply *Reply) {
	if want := fmt.Sprintf("%q", version(v.said.text("id"), v.said.time("updatedAt"))); reply.Header.Get("ETag") != want {
		v.say("ETag is %s, not %s", reply.Header.Get("ETag"), want)
	}
	if v.said.yes("done") != (reply.Header.Get("Retry-After") == "") {
		v.say("Retry-After is %q, done %s", reply.Header.Get("Retry-After"), v.said.members["done"])
	}
	if at := reply.Header.Get("Location"); reply.Status == http.StatusCreated && at != read(v.said.members["links"], v.said.problems).text("self") {
		v.say("Location is %q", at)
	}
}

// version is an ETag without its quotes.
func version(id string, at time.Time) string { return fmt.Sprintf("%s.%d", id, at.UnixMicro()) }
