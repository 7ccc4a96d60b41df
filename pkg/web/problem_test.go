package web_test

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/web"
)

const runID = "01890a5d-ac96-774b-bcce-b302099a8057"

// run is a run in state, as the store would hand it over.
func run(state lifecycle.State) lifecycle.Run {
	return lifecycle.Run{
		Ref:    lifecycle.Ref{Kind: lifecycle.WF2Des, ID: runID},
		Tenant: lifecycle.Tenant{OrganizationID: 1, ProjectID: 7},
		State:  state, Attempt: 2,
		CreatedAt: time.Date(2026, 11, 29, 12, 0, 0, 120_000_000, time.FixedZone("JST", 9*60*60)),
	}
}

// Every code, and what makes it.
func TestEveryErrorHasItsProblem(t *testing.T) {
	invalid := &lifecycle.InvalidError{Field: "/screenId", Reason: "is required"}
	for _, c := range []struct {
		err    error
		status int
		code   string
		header map[string]string
		fault  string // pointer or parameter of the first fault
	}{
		{&web.MalformedError{Field: "limit", Reason: "must be a number"}, 400, "malformed_request", nil, "limit"},
		{&web.MalformedError{Field: "/attempt", Reason: "must be a number"}, 400, "malformed_request", nil, "/attempt"},
		{&auth.UnauthenticatedError{Reason: "the token has expired"}, 401, "unauthenticated", map[string]string{"Www-Authenticate": "Bearer"}, ""},
		{&auth.ForbiddenError{Reason: "not for you"}, 403, "forbidden", nil, ""},
		{lifecycle.ErrUnknownUser, 403, "forbidden", nil, ""},
		{lifecycle.ErrNotFound, 404, "not_found", nil, ""},
		{&web.MethodNotAllowedError{Allow: []string{"GET", "HEAD"}}, 405, "method_not_allowed", map[string]string{"Allow": "GET, HEAD"}, ""},
		{&lifecycle.OpenRunError{Existing: run(lifecycle.Parsing)}, 409, "open_run", map[string]string{"Location": "/v1/projects/7/wf2des/" + runID}, ""},
		{&lifecycle.RefusedError{Code: lifecycle.StateConflict, Run: run(lifecycle.Cancelled), Reason: "it is over"}, 409, "state_conflict", nil, ""},
		{&lifecycle.RefusedError{Code: lifecycle.PhaseConflict, Run: run(lifecycle.AwaitingConfirm), Reason: "not yet"}, 409, "phase_conflict", nil, ""},
		{&lifecycle.RefusedError{Code: lifecycle.AttemptMismatch, Run: run(lifecycle.AwaitingConfirm), Reason: "too old"}, 409, "attempt_mismatch", nil, ""},
		{lifecycle.ErrKeyInFlight, 409, "idempotency_in_flight", map[string]string{"Retry-After": "1"}, ""},
		{&web.TooLargeError{Limit: 10}, 413, "payload_too_large", nil, ""},
		{&web.UnsupportedMediaTypeError{Reason: "must be JSON"}, 415, "unsupported_media_type", nil, ""},
		{invalid, 422, "invalid_field", nil, "/screenId"},
		{errors.Join(invalid, errors.New("other")), 422, "invalid_field", nil, "/screenId"},
		{lifecycle.ErrKeyReused, 422, "idempotency_mismatch", nil, "Idempotency-Key"},
		{&web.RateLimitedError{RetryAfter: 1500 * time.Millisecond}, 429, "rate_limited", map[string]string{"Retry-After": "2"}, ""},
		{&web.RateLimitedError{}, 429, "rate_limited", map[string]string{"Retry-After": "1"}, ""},
		{errors.New("pq: password authentication failed"), 500, "internal", nil, ""},
		{lifecycle.ErrOutcomeUnknown, 503, "outcome_unknown", map[string]string{"Retry-After": "1"}, ""},
		{fmt.Errorf("%w: %w", lifecycle.ErrOutcomeUnknown, context.DeadlineExceeded), 503, "outcome_unknown", nil, ""},
		{lifecycle.ErrUnavailable, 503, "unavailable", map[string]string{"Retry-After": "2"}, ""},
		{auth.ErrKeysUnavailable, 503, "unavailable", map[string]string{"Retry-After": "2"}, ""},
		{context.DeadlineExceeded, 503, "unavailable", map[string]string{"Retry-After": "2"}, ""},
		{context.Canceled, 503, "unavailable", map[string]string{"Retry-After": "2"}, ""},
	} {
		rt := web.NewRouter()
		rt.Handle(http.MethodPost, "/", refuse(fmt.Errorf("store: apply: %w", c.err)))
		got := serve(t, rt, web.Options{}).send(t, http.MethodPost, "/", "")
		p := got.problem(t)
		if p.Status != c.status || p.Code != c.code {
			t.Errorf("%v: got %d %s, want %d %s", c.err, p.Status, p.Code, c.status, c.code)
		}
		for name, want := range c.header {
			if got := got.Header.Get(name); got != want {
				t.Errorf("%v: %s %q, want %q", c.err, name, got, want)
			}
		}
		if fault := firstFault(p); fault != c.fault {
			t.Errorf("%v: fault at %q, want %q", c.err, fault, c.fault)
		}
		if strings.Contains(got.body, "store: apply") || strings.Contains(got.body, "pq:") {
			t.Errorf("%v: the inside shows: %s", c.err, got.body)
		}
	}
}

func firstFault(p problem) string {
	if len(p.Errors) == 0 {
		return ""
	}
	if p.Errors[0].Pointer != nil {
		return *p.Errors[0].Pointer
	}
	return p.Errors[0].Parameter
}

// The whole document, so that no member comes, goes or is renamed by accident.
func TestConflictTellsHowTheRunStands(t *testing.T) {
	for _, c := range []struct {
		err  error
		want map[string]any
	}{
		{&lifecycle.OpenRunError{Existing: run(lifecycle.AwaitingConfirm)}, map[string]any{
			"type": "/problems/open_run", "title": "An open run stands in the way", "status": 409.0, "code": "open_run",
			"detail": "This node has an open run already. Wait for it, or cancel it first.", "requestId": "fixed",
			"existingId": runID, "runStatus": "processing", "phase": "awaiting_confirm", "attempt": 2.0,
			"createdAt": "2026-11-29T03:00:00.120000Z", "nextActions": []any{"confirm", "reject", "cancel"},
		}},
		{&lifecycle.RefusedError{Code: lifecycle.StateConflict, Run: run(lifecycle.Rejected), Reason: "The run was rejected."}, map[string]any{
			"type": "/problems/state_conflict", "title": "The run's state does not allow that", "status": 409.0, "code": "state_conflict",
			"detail": "The run was rejected.", "requestId": "fixed",
			"runStatus": "rejected", "phase": nil, "attempt": 2.0,
			"createdAt": "2026-11-29T03:00:00.120000Z", "nextActions": []any{"delete"},
		}},
	} {
		rt := web.NewRouter()
		rt.Handle(http.MethodPost, "/", refuse(c.err))
		answer := serve(t, rt, web.Options{}).send(t, http.MethodPost, "/", "", "X-Request-Id: fixed")
		var got map[string]any
		if err := json.Unmarshal([]byte(answer.body), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// Nobody can tell a path that does not exist from a run that belongs to somebody else.
func TestNotFoundIsByteIdenticalButForTheRequest(t *testing.T) {
	rt := web.NewRouter()
	rt.Handle(http.MethodGet, "/foreign", refuse(fmt.Errorf("store: run of another tenant: %w", lifecycle.ErrNotFound)))
	rt.Handle(http.MethodGet, "/unknown", refuse(lifecycle.ErrNotFound))
	s := serve(t, rt, web.Options{})
	want := s.send(t, http.MethodGet, "/unknown", "", "X-Request-Id: fixed")
	for _, path := range []string{"/foreign", "/no/such/route"} {
		got := s.send(t, http.MethodGet, path, "", "X-Request-Id: fixed")
		got.Header.Del("Date")
		want.Header.Del("Date")
		if got.body != want.body || got.StatusCode != want.StatusCode {
			t.Errorf("%s: %s\nand %s", path, got.body, want.body)
		}
		if diff := cmp.Diff(want.Header, got.Header); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

func TestAnInternalErrorIsToldToTheLogAlone(t *testing.T) {
	rt := web.NewRouter()
	rt.Handle(http.MethodGet, "/", refuse(errors.New("dial postgres://user:pw@db: refused")))
	s := serve(t, rt, web.Options{})
	got := s.send(t, http.MethodGet, "/", "")
	if strings.Contains(got.body, "postgres") {
		t.Errorf("the client was told: %s", got.body)
	}
	line := s.log.line(t, 0)
	if line["error"] != "dial postgres://user:pw@db: refused" || line["level"] != "ERROR" || line["code"] != "internal" {
		t.Errorf("the log was told: %v", line)
	}
	if n := strings.Count(s.log.String(), "dial postgres"); n != 1 {
		t.Errorf("the cause was logged %d times", n)
	}
}

// A reason may quote a stranger's bytes; they must not turn a refusal into a failure.
func TestAReasonWithBrokenTextIsStillAProblem(t *testing.T) {
	rt := web.NewRouter()
	rt.Handle(http.MethodGet, "/", refuse(&lifecycle.InvalidError{Field: "/a", Reason: "not \xff\x00\" this"}))
	p := serve(t, rt, web.Options{}).send(t, http.MethodGet, "/", "").problem(t)
	if p.Status != 422 || p.Errors[0].Detail != "not \uFFFD\x00\" this" {
		t.Errorf("%+v", p)
	}
}
