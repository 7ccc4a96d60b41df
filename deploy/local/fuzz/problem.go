package fuzz

import (
	"encoding/json/v2"
	"net/http"
	"regexp"
	"strings"
)

// codes is the fixed list: every code that a problem document may have, and its status.
var codes = map[string]int{
	"malformed_request": 400, "unauthenticated": 401, "forbidden": 403, "not_found": 404, "method_not_allowed": 405,
	"open_run": 409, "state_conflict": 409, "phase_conflict": 409, "attempt_mismatch": 409, "idempotency_in_flight": 409,
	"payload_too_large": 413, "unsupported_media_type": 415, "invalid_field": 422, "idempotency_mismatch": 422,
	"rate_limited": 429, "internal": 500, "outcome_unknown": 503, "unavailable": 503,
}

// faulty are the codes that need a broken part, two requests with one Idempotency-Key at once, or a machine quick enough to outrun a
// rate, to occur.
var faulty = map[string]bool{"internal": true, "outcome_unknown": true, "unavailable": true, "idempotency_in_flight": true, "rate_limited": true}

// conflicts are the codes whose documents tell how the run stands.
var conflicts = map[string]bool{"open_run": true, "state_conflict": true, "phase_conflict": true, "attempt_mismatch": true}

// leak finds what no answer may say: the inside of a program or a database.
var leak = regexp.MustCompile(`\bpq: |SQLSTATE|goroutine \d|\.go:\d|runtime error|constraint|relation "|whsec_|postgres://|nats://|\bjson: `)

func (v *verdict) problem(r *Request, reply *Reply) {
	if kind := reply.Header.Get("Content-Type"); kind != "application/problem+json" {
		v.say("the refusal is %q: %s", kind, reply.Body)
		return
	}
	v.shape, v.said = aProblem, read(reply.Body, &v.problems)
	p := v.said
	names := []string{"type", "title", "status", "code", "detail", "errors?", "requestId"}
	code := p.text("code")
	if conflicts[code] {
		names = append(names, "runStatus", "phase", "attempt", "createdAt", "nextActions")
	}
	if code == "open_run" {
		names = append(names, "existingId")
	}
	p.only(names...)
	switch status, known := codes[code]; {
	case !known:
		v.say("the code %q is not on the list", code)
	case status != reply.Status || int(p.number("status", 400, 599)) != reply.Status:
		v.say("the code %s came with the status %d in the head and %s in the body", code, reply.Status, p.members["status"])
	}
	v.problemTexts(reply, code)
	v.problemHeaders(reply, code)
	if inside := leak.Find(reply.Body); inside != nil && !strings.Contains(string(r.Body)+r.Target, string(inside)) {
		v.say("the answer tells of the inside: %q in %s", inside, reply.Body)
	}
}

func (v *verdict) problemTexts(reply *Reply, code string) {
	p := v.said
	if p.text("type") != "/problems/"+code || p.text("title") == "" || p.text("detail") == "" {
		v.say("type, title or detail are not right: %s", reply.Body)
	}
	if p.text("requestId") != reply.Header.Get("X-Request-Id") {
		v.say("requestId is %s, X-Request-Id %s", p.text("requestId"), reply.Header.Get("X-Request-Id"))
	}
	if p.null("errors") {
		return
	}
	for _, raw := range p.list("errors") {
		var fault struct {
			Pointer   *string `json:"pointer"`
			Parameter *string `json:"parameter"`
			Detail    *string `json:"detail"`
		}
		if err := json.Unmarshal(raw, &fault, json.RejectUnknownMembers(true)); err != nil {
			v.say("an entry of errors cannot be read: %v in %s", err, raw)
		} else if (fault.Pointer == nil) == (fault.Parameter == nil) || fault.Detail == nil || *fault.Detail == "" ||
			fault.Pointer != nil && *fault.Pointer != "" && !strings.HasPrefix(*fault.Pointer, "/") {
			v.say("an entry of errors does not say what and where: %s", raw)
		}
	}
}

// problemHeaders are those that a client cannot do without.
func (v *verdict) problemHeaders(reply *Reply, code string) {
	wanted := map[string]string{
		"method_not_allowed": "Allow", "unauthenticated": "WWW-Authenticate", "rate_limited": "Retry-After", "open_run": "Location",
		"unavailable": "Retry-After", "outcome_unknown": "Retry-After", "idempotency_in_flight": "Retry-After",
	}[code]
	if wanted != "" && reply.Header.Get(wanted) == "" {
		v.say("%s without %s", code, wanted)
	}
	if allow := reply.Header.Get("Allow"); reply.Status == http.StatusMethodNotAllowed && strings.Contains(allow, ",,") {
		v.say("Allow is %q", allow)
	}
}
