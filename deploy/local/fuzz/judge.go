package fuzz

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// verdict is what an answer says, and everything that is wrong with it whatever was asked.
type verdict struct {
	shape    shape
	said     document
	problems []string
	deleted  bool // said is a run that was just deleted
}

func (v *verdict) say(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// judge holds an answer against the manners of the suite.
func judge(r *Request, reply *Reply) *verdict {
	v := &verdict{said: document{members: nil}}
	v.said.problems = &v.problems
	if plainRefusal(r, reply) {
		return v
	}
	v.status(r, reply)
	v.headers(r, reply)
	v.framing(r, reply)
	switch {
	case r.Method == http.MethodHead || reply.Status == http.StatusNoContent || reply.Status == http.StatusNotModified:
	case reply.Status >= 400:
		v.problem(r, reply)
	default:
		v.good(r, reply)
	}
	return v
}

// plainRefusal recognises what net/http answers by itself to bytes that are no request.
func plainRefusal(r *Request, reply *Reply) bool {
	plain := strings.HasPrefix(reply.Header.Get("Content-Type"), "text/plain") || len(reply.Body) == 0
	return r.Raw && slices.Contains([]int{400, 417, 431, 501, 505}, reply.Status) && plain && reply.Header.Get("X-Request-Id") == ""
}

func (v *verdict) status(r *Request, reply *Reply) {
	switch {
	case reply.Status >= 500:
		v.say("the status is %d: %s", reply.Status, reply.Body)
	case reply.Status >= 300 && reply.Status < 400 && reply.Status != http.StatusNotModified:
		v.say("the answer is a redirect, %d to %q", reply.Status, reply.Header.Get("Location"))
	case r.wants != nil && !slices.Contains(r.wants, reply.Status):
		v.say("the status is %d, not one of %v: %s", reply.Status, r.wants, reply.Body)
	}
}

var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func (v *verdict) headers(r *Request, reply *Reply) {
	h := reply.Header
	if id := h.Values("X-Request-Id"); len(id) != 1 || !requestIDForm.MatchString(id[0]) {
		v.say("X-Request-Id is %q", id)
	} else if sent := r.values("X-Request-Id"); len(sent) == 1 && requestIDForm.MatchString(sent[0]) && sent[0] != id[0] {
		v.say("X-Request-Id is %q, not the %q that was sent", id[0], sent[0])
	}
	origin := h.Values("Access-Control-Allow-Origin")
	switch {
	case r.Service == "status" && len(origin) > 0:
		v.say("service status lets browsers in: %q", origin)
	case r.Service != "status" && (len(origin) != 1 || origin[0] != "*"):
		v.say("Access-Control-Allow-Origin is %q", origin)
	}
	if h.Get("Access-Control-Allow-Credentials") != "" {
		v.say("there is an Access-Control-Allow-Credentials")
	}
	for _, name := range []string{"X-Content-Type-Options", "Cache-Control"} {
		if len(h.Values(name)) != 1 {
			v.say("%s is %q", name, h.Values(name))
		}
	}
	if reply.Status >= 400 && h.Get("ETag") != "" {
		v.say("a refusal carries the version %s", h.Get("ETag"))
	}
}

// framing checks that the body is as long as announced, which net/http has read, and that there is one only where one belongs.
func (v *verdict) framing(r *Request, reply *Reply) {
	kind := reply.Header.Get("Content-Type")
	switch {
	case reply.Status == http.StatusNoContent || reply.Status == http.StatusNotModified:
		if len(reply.Body) > 0 || kind != "" {
			v.say("a %d with a body: %q", reply.Status, reply.Body)
		}
	case kind == "text/event-stream":
	case reply.Length < 0:
		v.say("there is no Content-Length")
	case r.Method == http.MethodHead && len(reply.Body) > 0:
		v.say("HEAD is answered with a body")
	case r.Method != http.MethodHead && int64(len(reply.Body)) != reply.Length:
		v.say("the body has %d bytes, %d were announced", len(reply.Body), reply.Length)
	}
}
