package fuzz

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"net/http"

	"framerun.dev/pkg/figma"
)

// enter writes into the book what an answer says, and holds it against what is known. It returns the run whose new version has to be
// asked for.
func (b *book) enter(r *Request, reply *Reply, v *verdict) *entry {
	route := routeForm.FindStringSubmatch(r.path())
	if route != nil {
		b.touch(route[3])
	}
	switch {
	case reply.Status == http.StatusNotModified:
		b.unchanged(r, v, route)
	case reply.Status == http.StatusNoContent && r.Method == http.MethodGet:
		b.overheard(r, v, route)
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
	switch {
	case reply.Status == http.StatusCreated && reply.Header.Get("Idempotent-Replayed") != "":
		b.replayed(r, v, e)
	case reply.Status == http.StatusCreated && e == nil:
		b.created(r, v)
	case e == nil:
		v.say("a run is shown that is not of this worker's making: %s", id)
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
	b.keep(r, v, e)
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

// keep remembers which run an Idempotency-Key has made.
func (b *book) keep(r *Request, v *verdict, e *entry) {
	for _, key := range r.values("Idempotency-Key") {
		if before := b.keys[ownKey(e, key)]; before != nil {
			v.say("the key %q has made run %s, and before it %s", key, e.id, before.id)
		}
		b.keys[ownKey(e, key)] = e
	}
}

// ownKey is a key as the suite tells them apart: organizations do not share keys, callers neither.
func ownKey(e *entry, key string) string { return fmt.Sprintf("%d %s", e.tenant.organization, key) }

// replayed checks that who asks again is shown the run that the key has made, as it stands now.
func (b *book) replayed(r *Request, v *verdict, e *entry) {
	keys := r.values("Idempotency-Key")
	if e == nil || len(keys) != 1 || b.keys[ownKey(e, keys[0])] != e {
		v.say("run %s is shown again for the keys %q, which have not made it", v.said.text("id"), keys)
		return
	}
	b.touch(e.id)
	b.read(v, e)
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
		v.say("run %s is shown differently from what its steps told: known is %v", e.id, e)
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
		e.changed, e.status, e.phase, e.feedback, e.placed = at, d.text("status"), d.text("phase"), d.text("feedbackStatus"),
			!d.null("materializedAt")
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
