package fuzz

import (
	"net/url"
	"regexp"
	"strings"

	"framerun.dev/migrations/platform"
)

// heard enters the answer to a worker's word.
func (b *book) heard(r *Request, v *verdict) *entry {
	sent := sentMembers(r.Body)
	if len(sent) == 0 {
		sent = failureMembers(r.Body)
	}
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

var failureForm = regexp.MustCompile(`"(job_id|code2wf_id|event)"\s*:\s*"([^"]*)"`)

// failureMembers reads what is no JSON: only a failed event is accepted in spite of what its texts hold.
func failureMembers(body []byte) map[string]string {
	members := map[string]string{}
	for _, found := range failureForm.FindAllStringSubmatch(string(body), -1) {
		members[found[1]] = found[2]
	}
	if members["event"] != "failed" {
		return nil
	}
	return members
}

// told compares a timeline.
func (b *book) told(v *verdict, e *entry) {
	if lines := len(v.said.list("items")); e == nil || lines != e.lines {
		v.say("the timeline has %d lines, known is %v", lines, e)
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
		v.say("the refusal tells of run %s as %s %s, known is %v", id, d.text("runStatus"), d.text("phase"), e)
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

// eventNumber is the id of a run event.
var eventNumber = regexp.MustCompile(`^[1-9]\d*$`)

// overheard checks a 204 instead of a stream: the run has ended, and the reader has seen its end.
func (b *book) overheard(r *Request, v *verdict, route []string) {
	if route == nil || route[4] != "" || b.runs[route[3]] == nil {
		v.say("204 for a path that shows no run")
	} else if e := b.runs[route[3]]; e.open() || !eventNumber.MatchString(strings.Join(r.values("Last-Event-ID"), ",")) {
		v.say("204, and the reader of run %s has not seen its end", e.id)
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
			v.say("the list shows run %s as %s of %v, known is %v", e.id, d.text("status"), d.time("updatedAt"), e)
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
