package fuzz

import (
	"bytes"
	"strings"
)

// list judges a page: its items are whole runs, and it says the same about the next page twice.
func (v *verdict) list(reply *Reply, kind string) {
	v.said.only("items", "nextCursor")
	for _, item := range v.said.list("items") {
		d := read(item, &v.problems)
		v.run(d, string(d.members["projectId"]), kind)
	}
	if link := reply.Header.Get("Link"); v.said.null("nextCursor") != (link == "") || link != "" && !strings.HasSuffix(link, `>; rel="next"`) {
		v.say("nextCursor is %s, Link %q", v.said.members["nextCursor"], link)
	}
}

// timeline judges a timeline: numbered without a gap, in known words.
func (v *verdict) timeline() {
	v.said.only("items")
	for i, item := range v.said.list("items") {
		d := read(item, &v.problems)
		d.only("seq", "what", "outcome", "by", "actor", "from", "to", "attempt", "at", "resultUrl?", "errorMessage?", "flagCount?",
			"score?", "scoreVersion?", "feedbackStatus?")
		if int(d.number("seq", 1, 1<<31-1)) != i+1 {
			d.say("line %d of the timeline has the number %s", i+1, d.members["seq"])
		}
		d.word("what", "created", "parsed", "confirmed", "rejected", "completed", "failed", "cancelled", "placed", "rated", "deleted", "requeued")
		d.word("outcome", outcomes...)
		d.word("by", "user", "worker", "backend")
		d.word("to", states...)
		if i > 0 {
			d.word("from", states...)
		}
		d.time("at")
	}
}

func (v *verdict) result(kind, id string) {
	v.said.only("url", "expiresAt", "key")
	v.said.time("expiresAt")
	if key, url := v.said.text("key"), v.said.text("url"); !strings.HasPrefix(key, kind+"/"+id+"/") || !strings.HasPrefix(url, "http://127.0.0.1:") {
		v.say("the result of %s %s is said to be %q at %q", kind, id, key, url)
	}
}

// word judges what a worker is told.
func (v *verdict) word() {
	d := v.said
	d.only("outcome", "status", "phase", "attempt", "continue")
	outcome, status := d.word("outcome", outcomes...), d.word("status", statuses...)
	if !d.null("phase") {
		d.word("phase", phases...)
	}
	d.number("attempt", 1, 1<<31-1)
	if d.yes("continue") != (status == "processing" && outcome != "superseded") {
		d.say("%s, %s and continue is %s", outcome, status, d.members["continue"])
	}
	if outcome == "already_terminal" && status == "processing" {
		d.say("a run in processing is said to have ended")
	}
}

// event judges the first event of a stream: a whole run, or a comment for a reader who has seen this version.
func (v *verdict) event(reply *Reply) {
	v.shape = anEvent
	event := string(reply.Body)
	if strings.HasPrefix(event, ": still ") && strings.HasSuffix(event, "\n\n") {
		return
	}
	_, data, ok := bytes.Cut(reply.Body, []byte("\ndata: "))
	begun := strings.HasPrefix(event, "event: run\nid: ") || strings.HasPrefix(event, "event: step\nid: ")
	if first, _, _ := bytes.Cut(data, []byte("\n")); ok && begun {
		read(first, &v.problems)
		return
	}
	v.say("the stream begins with %q", event)
}
