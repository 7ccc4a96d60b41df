package fuzz

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"net/http"
	"net/url"
	"strings"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/figma"
)

// enter writes into the book what an answer says, and holds it against what is known. It returns the run whose new version has to be
// asked for.
func (b *book) enter(r *Request, reply *Reply, v *verdict) *entry {
	route := routeForm.FindStringSubmatch(r.path())
	if route != nil {
		b.touch(route[3])
	}
	if reply.Status == http.StatusNotModified {
		b.unchanged(r, v, route)
	}
	if len(v.problems) > 0 {
		return nil // what is no proper document says nothing
	}
	switch v.shape {
	case aRun:
		b.shown(r, reply, v, route[4])
	case aTimeline:
		b.told(v, b.runs[route[3]])
	case aList:
		b.listed(r, v)
	case aProblem:
		b.refused(v, route)
	case aWord:
		return b.heard(r, v)
	}
	return nil
}

// shown enters a run that an answer showed.
func (b *book) shown(r *Request, reply *Reply, v *verdict, verb string) {
	id := v.said.text("id")
	e := b.runs[id]
	replayed := reply.Header.Get("Idempotent-Replayed") == "true"
	switch {
	case reply.Status == http.StatusCreated && e == nil && !replayed:
		b.created(r, v)
	case e == nil:
		v.say("a run is shown that is not of this worker's making: %s", id)
	case replayed:
	case r.Method == http.MethodGet:
		b.read(v, e)
	case reply.Status == http.StatusOK:
		b.decided(r, v, e, verb)
	default:
		v.say("the run %s is told as created once more", id)
	}
}

// created opens the account of a new run, and compares what is shown with what was sent: texts must come back exactly.
func (b *book) created(r *Request, v *verdict) {
	d, sent := v.said, sentMembers(r.Body)
	e := &entry{id: d.text("id"), kind: d.text("kind"), fileKey: d.text("figmaFileKey"), node: d.text("wfNodeId"), edge: d.text("edge"),
		screen: d.text("screenId"), status: d.text("status"), phase: d.text("phase"), auto: d.text("autoConfirm") == "auto_confirm",
		changed: d.time("updatedAt"), by: b.people.subject, lines: 1, applied: 1, jobs: 1}
	for _, t := range b.people.tenants {
		if float64(t.project) == d.number("projectId", 1, 1<<62) && float64(t.organization) == d.number("organizationId", 1, 1<<62) {
			e.tenant = t
		}
	}
	b.add(e)
	for _, name := range []string{"figmaFileKey", "screenId", "prompt", "pageImportId"} {
		if text, ok := sent[name]; ok && d.text(name) != text {
			v.say("%s was sent as %q and is shown as %q", name, text, d.text(name))
		}
	}
	for _, name := range []string{"wfNodeId", "placementTarget"} {
		if canonical, err := figma.NodeID(sent[name]); sent[name] != "" && (err != nil || d.text(name) != canonical) {
			v.say("%s was sent as %q and is shown as %q", name, sent[name], d.text(name))
		}
	}
	if e.tenant.project == 0 || d.text("createdBy") != e.by || d.text("updatedBy") != e.by || d.time("createdAt") != e.changed || !e.open() ||
		d.number("attempt", 0, 9) != 1 || (e.phase == "parse") != (e.kind == "wf2des") {
		v.say("a new run should not look like this")
	}
}

// sentMembers reads the texts of a body that was accepted, leniently: a failed event is accepted with broken texts.
func sentMembers(body []byte) map[string]string {
	var all map[string]jsontext.Value
	texts := map[string]string{}
	if json.Unmarshal(body, &all, jsontext.AllowInvalidUTF8(true)) != nil {
		return texts
	}
	for name, value := range all {
		var text string
		if json.Unmarshal(value, &text, jsontext.AllowInvalidUTF8(true)) == nil && !bytes.Equal(value, []byte("null")) {
			texts[name] = text
		}
	}
	return texts
}

// read compares a run that was only looked at.
func (b *book) read(v *verdict, e *entry) {
	at := v.said.time("updatedAt")
	switch {
	case e.deleted:
		v.say("the deleted run %s is shown", e.id)
	case e.stale && at.After(e.changed):
		e.changed, e.stale = at, false
	case e.stale || !at.Equal(e.changed):
		v.say("run %s is shown as of %v, its last step is of %v (stale %v)", e.id, at, e.changed, e.stale)
	}
	b.compare(v, e)
}

func (b *book) compare(v *verdict, e *entry) {
	d := v.said
	if d.text("status") != e.status || d.text("phase") != e.phase || d.text("screenId") != e.screen || d.text("updatedBy") != e.by ||
		d.null("materializedAt") == e.placed || d.text("feedbackStatus") != e.feedback {
		v.say("run %s is shown differently from what its steps told: known %+v", e.id, *e)
	}
}

// decided enters the answer to a person's decision: it was applied exactly if the version is a new one.
func (b *book) decided(r *Request, v *verdict, e *entry, verb string) {
	d := v.said
	at := d.time("updatedAt")
	if at.Before(e.changed) {
		v.say("run %s went back from %v to %v", e.id, e.changed, at)
	}
	if at.After(e.changed) {
		e.step(b.people.subject)
		e.changed, e.status, e.phase, e.feedback, e.placed = at, d.text("status"), d.text("phase"), d.text("feedbackStatus"), !d.null("materializedAt")
		if verb == "confirm" && e.phase == "assemble" {
			e.jobs++
		}
	}
	e.deleted = e.deleted || r.Method == http.MethodDelete
	b.compare(v, e)
	b.wanted(r, v, e, verb)
}

// wanted checks that a decision that was accepted is so now.
func (b *book) wanted(r *Request, v *verdict, e *entry, verb string) {
	sent := sentMembers(r.Body)
	so := map[string]bool{
		"confirm": sent["decision"] == "confirm" && e.phase == "assemble" || sent["decision"] == "reject" && e.status == "rejected",
		"cancel":  e.status == "cancelled", "placement": e.placed, "feedback": e.feedback == sent["feedbackStatus"],
		"": r.Method == http.MethodDelete && !e.open(),
	}
	if !so[verb] {
		v.say("%s was accepted, and run %s is %s %s", verb, e.id, e.status, e.phase)
	}
}

// heard enters the answer to a worker's word.
func (b *book) heard(r *Request, v *verdict) *entry {
	sent := sentMembers(r.Body)
	e := b.touch(sent["job_id"] + sent["code2wf_id"])
	if e == nil {
		v.say("a word about a run that nobody made was accepted")
		return nil
	}
	outcome, status, phase := v.said.text("outcome"), v.said.text("status"), v.said.text("phase")
	moved := status != e.status || phase != e.phase
	if moved != (outcome == "applied" && sent["event"] != "progress") {
		v.say("the outcome is %s, and run %s went from %s %s to %s %s", outcome, e.id, e.status, e.phase, status, phase)
	}
	e.status, e.phase = status, phase
	switch {
	case sent["event"] == "progress":
		return nil
	case outcome != "applied":
		e.lines++
		return nil
	}
	e.step(platform.UserWorker)
	e.stale = true
	return e
}

// told compares a timeline.
func (b *book) told(v *verdict, e *entry) {
	if lines := len(v.said.list("items")); e == nil || lines != e.lines {
		v.say("the timeline has %d lines, known is %+v", lines, e)
	}
}

// refused compares what a refusal says of a run.
func (b *book) refused(v *verdict, route []string) {
	d, code := v.said, v.said.text("code")
	if !conflicts[code] {
		return
	}
	id := d.text("existingId")
	if code != "open_run" && route != nil {
		id = route[3]
	}
	if e := b.runs[id]; e != nil && (d.text("runStatus") != e.status || d.text("phase") != e.phase) || e == nil && code == "open_run" {
		v.say("the refusal tells of run %s as %s %s, known is %+v", id, d.text("runStatus"), d.text("phase"), e)
	}
}

// unchanged checks a 304: the version must be one that was sent.
func (b *book) unchanged(r *Request, v *verdict, route []string) {
	sent := strings.Join(r.values("If-None-Match"), ",")
	if route == nil || route[4] != "" || b.runs[route[3]] == nil {
		v.say("304 for a path that shows no run")
	} else if e := b.runs[route[3]]; !strings.Contains(sent, e.etag()) && strings.Trim(sent, " \t") != "*" || e.stale || e.deleted {
		v.say("304, and run %s has the version %s; sent was %s", e.id, e.etag(), sent)
	}
}

// listed compares the items of a page with the book and with the filters that were sent.
func (b *book) listed(r *Request, v *verdict) {
	_, query, _ := strings.Cut(r.Target, "?")
	filters := plainQuery(query)
	for _, item := range v.said.list("items") {
		d := read(item, &v.problems)
		for _, name := range []string{"figmaFileKey", "status", "phase", "edge", "screenId"} {
			if want, ok := filters[name]; ok && d.text(name) != want {
				v.say("the filter %s=%q let %q pass", name, want, d.text(name))
			}
		}
		switch e := b.runs[d.text("id")]; {
		case e != nil && !e.stale && (!d.time("updatedAt").Equal(e.changed) || d.text("status") != e.status || e.deleted):
			v.say("the list shows run %s as %s of %v, known is %+v", e.id, d.text("status"), d.time("updatedAt"), e)
		case e == nil && d.text("createdBy") == b.people.subject:
			v.say("the list shows a run that was never told as created: %s", d.text("id"))
		}
	}
	b.complete(r, v, filters)
}

// complete checks that a list of one file holds all that the worker knows of it.
func (b *book) complete(r *Request, v *verdict, filters map[string]string) {
	known, ok := b.files[filters["figmaFileKey"]]
	if !ok || len(filters) != 1 || !v.said.null("nextCursor") {
		return
	}
	visible := 0
	for _, e := range known {
		if !e.deleted && strings.HasPrefix(e.path(), r.path()+"/") {
			visible++
		}
	}
	if shown := len(v.said.list("items")); shown != visible {
		v.say("the list shows %d runs of file %s, there are %d", shown, filters["figmaFileKey"], visible)
	}
}

// plainQuery reads a query string that was accepted.
func plainQuery(query string) map[string]string {
	values, _ := url.ParseQuery(query)
	plain := map[string]string{}
	for name := range values {
		plain[name] = values.Get(name)
	}
	return plain
}
