package web

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"framerun.dev/pkg/lifecycle"
)

// Problem is a problem document (RFC 9457).
type Problem struct {
	Type   string  `json:"type"` // a stable reference: "/problems/" and the code
	Title  string  `json:"title"`
	Status int     `json:"status"`
	Code   string  `json:"code"` // stable; what programs look at
	Detail string  `json:"detail"`
	Errors []Fault `json:"errors,omitempty"`

	*Conflict

	RequestID string `json:"requestId"`

	header http.Header
}

// Fault is one thing that is wrong with a request, and where: exactly one of Pointer and Parameter is set.
type Fault struct {
	Pointer   *string `json:"pointer,omitzero"`   // JSON pointer (RFC 6901); "" is the whole body
	Parameter string  `json:"parameter,omitzero"` // a query parameter or a header
	Detail    string  `json:"detail"`
}

// Conflict tells how the run stands that a request collided with. RFC 9457 keeps `status` for the HTTP status, so the run's
// own is runStatus here.
type Conflict struct {
	ExistingID  string           `json:"existingId,omitzero"` // of the open run in the way
	RunStatus   lifecycle.Status `json:"runStatus"`
	Phase       *lifecycle.Phase `json:"phase"`
	Attempt     int              `json:"attempt"`
	CreatedAt   string           `json:"createdAt"`
	NextActions []lifecycle.Verb `json:"nextActions"`
}

// WriteProblem answers r with the problem document of err, unless an answer has begun already. The cause of a 5xx and of a
// refused caller goes into the request's line of the log.
func WriteProblem(w http.ResponseWriter, r *http.Request, err error) {
	x, p := exchangeOf(r.Context()), describe(err)
	x.code = p.Code
	if p.Status >= 500 || p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden {
		x.cause = err
	}
	if x.status != 0 {
		return
	}
	p.RequestID = x.requestID
	body, err := json.Marshal(p, jsontext.AllowInvalidUTF8(true)) // a reason may quote what a stranger sent
	if err != nil {
		panic(fmt.Errorf("web: rendering a problem: %w", err)) // strings and numbers only
	}
	w.Header().Del("ETag") // a handler's half-made answer must not lend its version to a refusal
	w.Header().Set("Cache-Control", "no-store")
	for name, values := range p.header {
		w.Header()[name] = values
	}
	send(w, r, p.Status, "application/problem+json", body)
}

func problem(code, detail string) *Problem {
	t := titles[code]
	return &Problem{Type: "/problems/" + code, Title: t.title, Status: t.status, Code: code, Detail: detail, header: http.Header{}}
}

func (p *Problem) with(header, value string) *Problem {
	p.header.Set(header, value)
	return p
}

// retry rounds up to the whole seconds that Retry-After knows: too early would be refused again.
func (p *Problem) retry(after time.Duration) *Problem {
	seconds := max(1, math.Ceil(after.Seconds()))
	return p.with("Retry-After", strconv.Itoa(int(seconds)))
}

// at adds a fault. A field that is empty or begins with a slash is a pointer, any other a parameter.
func (p *Problem) at(field, detail string) *Problem {
	fault := Fault{Parameter: field, Detail: detail}
	if field == "" || strings.HasPrefix(field, "/") {
		fault = Fault{Pointer: &field, Detail: detail}
	}
	p.Errors = append(p.Errors, fault)
	return p
}

func conflict(run lifecycle.Run) *Conflict {
	c := &Conflict{
		RunStatus:   run.State.Status(),
		Attempt:     run.Attempt,
		CreatedAt:   Timestamp(run.CreatedAt),
		NextActions: run.NextActions(),
	}
	if phase := run.State.Phase(); phase != "" {
		c.Phase = &phase
	}
	return c
}
