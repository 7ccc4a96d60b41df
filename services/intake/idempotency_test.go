package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
)

// Who sends an Idempotency-Key may ask again, and is told that it is the same run; the request is what it means, not how it is
// written.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	in := open(t)
	body := `{"figmaFileKey":"k","wfNodeId":"1:2","screenId":"s"}`
	first := in.Send(t, "POST", wf2des, in.Owner, body, "Idempotency-Key", "key-1")
	run := in.created(t, lifecycle.WF2Des, first)
	if first.Header.Get("Idempotent-Replayed") != "" {
		t.Error("the first answer says that it is replayed")
	}
	before := in.Content(t)
	again := in.Send(t, "POST", wf2des, in.Owner, ` { "wfNodeId":"1:2","screenId":"s", "figmaFileKey":"k", "prompt":null }`, "Idempotency-Key", "key-1")
	if in.created(t, lifecycle.WF2Des, again).ID != run.ID || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("asked again: %s, replayed %q", again.Body, again.Header.Get("Idempotent-Replayed"))
	}
	if again.Header.Get("Location") != first.Header.Get("Location") {
		t.Error("the second answer leads elsewhere")
	}
	in.Send(t, "POST", wf2des, in.Owner, strings.Replace(body, "1:2", "1:3", 1), "Idempotency-Key", "key-1").Refused(t, 422, "idempotency_mismatch")
	in.Send(t, "POST", wf2des, in.Owner, body).Refused(t, 409, "open_run")
	if diff := cmp.Diff(before, in.Content(t)); diff != "" {
		t.Errorf("something changed after the first answer: %s", diff)
	}
	in.created(t, lifecycle.WF2Des, in.Send(t, "POST", wf2des, in.Colleague, strings.Replace(body, "1:2", "1:4", 1), "Idempotency-Key", "key-1"))
}

func TestIdempotencyKeyForCode2WF(t *testing.T) {
	t.Parallel()
	in := open(t)
	ask := func(key string) string {
		reply := in.Send(t, "POST", code2wf, in.Owner, `{"figmaFileKey":"k","pageImportId":"`+plainCode2WF["pageImportId"].(string)+`","screenId":"s"}`, "Idempotency-Key", key)
		return in.created(t, lifecycle.Code2WF, reply).ID
	}
	if first := ask("a"); ask("a") != first || ask("b") == first {
		t.Error("a code2wf run is not the one of its key")
	}
}

func TestIdempotencyKeysThatCannotBeRead(t *testing.T) {
	t.Parallel()
	in := open(t)
	for _, key := range []string{"a key", "clé", strings.Repeat("k", 256)} {
		in.refused(t, func() servicetest.Reply {
			return in.Send(t, "POST", wf2des, in.Owner, `{"figmaFileKey":"k","wfNodeId":"1:2","screenId":"s"}`, "Idempotency-Key", key)
		}, 400, "malformed_request", "Idempotency-Key")
	}
	in.created(t, lifecycle.WF2Des, in.Send(t, "POST", wf2des, in.Owner, `{"figmaFileKey":"k","wfNodeId":"1:2","screenId":"s"}`,
		"Idempotency-Key", strings.Repeat("k", 255)))
}
