package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/lifecycle"
)

// titles are the codes that exist, with the status and the title that belong to each.
var titles = map[string]struct {
	status int
	title  string
}{
	"malformed_request":      {http.StatusBadRequest, "The request cannot be read"},
	"unauthenticated":        {http.StatusUnauthorized, "Who is asking is not known"},
	"forbidden":              {http.StatusForbidden, "This caller may not do that"},
	"not_found":              {http.StatusNotFound, "Not found"},
	"method_not_allowed":     {http.StatusMethodNotAllowed, "The path does not take this method"},
	"open_run":               {http.StatusConflict, "An open run stands in the way"},
	"state_conflict":         {http.StatusConflict, "The run's state does not allow that"},
	"phase_conflict":         {http.StatusConflict, "The run's phase does not allow that"},
	"attempt_mismatch":       {http.StatusConflict, "The run is at another attempt"},
	"idempotency_in_flight":  {http.StatusConflict, "The first request with this key is still being answered"},
	"payload_too_large":      {http.StatusRequestEntityTooLarge, "The body is too large"},
	"unsupported_media_type": {http.StatusUnsupportedMediaType, "The body is not JSON"},
	"invalid_field":          {http.StatusUnprocessableEntity, "The request makes no sense"},
	"idempotency_mismatch":   {http.StatusUnprocessableEntity, "The key was used for another request"},
	"rate_limited":           {http.StatusTooManyRequests, "Too many requests"},
	"internal":               {http.StatusInternalServerError, "Something went wrong on our side"},
	"outcome_unknown":        {http.StatusServiceUnavailable, "It is not known whether the change was stored"},
	"unavailable":            {http.StatusServiceUnavailable, "Temporarily unavailable"},
}

// table turns errors into problems: the first row that knows an error describes it.
var table = []row{
	as(func(e *MalformedError) *Problem { return problem("malformed_request", e.Error()).at(e.Field, e.Reason) }),
	as(func(e *TooLargeError) *Problem {
		// A connection that is kept would be read on before the answer leaves, for as long as the client sends.
		return problem("payload_too_large", sentence(e)).with("Connection", "close")
	}),
	as(func(e *UnsupportedMediaTypeError) *Problem { return problem("unsupported_media_type", e.Reason) }),
	as(func(e *MethodNotAllowedError) *Problem {
		return problem("method_not_allowed", sentence(e)).with("Allow", allowList(e.Allow))
	}),
	as(func(e *RateLimitedError) *Problem {
		return problem("rate_limited", "This caller has asked too often.").retry(e.RetryAfter)
	}),
	is(lifecycle.ErrKeyReused, func() *Problem {
		return problem("idempotency_mismatch", sentence(lifecycle.ErrKeyReused)).
			at("Idempotency-Key", "use a fresh key for another request")
	}),
	is(lifecycle.ErrKeyInFlight, func() *Problem {
		return problem("idempotency_in_flight", sentence(lifecycle.ErrKeyInFlight)).retry(time.Second)
	}),
	is(lifecycle.ErrNotFound, func() *Problem {
		return problem("not_found", "There is nothing here, or nothing that is yours.")
	}),
	as(func(e *auth.UnauthenticatedError) *Problem {
		return problem("unauthenticated", e.Reason).with("WWW-Authenticate", "Bearer")
	}),
	as(func(e *auth.ForbiddenError) *Problem { return problem("forbidden", e.Reason) }),
	is(lifecycle.ErrUnknownUser, func() *Problem { return problem("forbidden", sentence(lifecycle.ErrUnknownUser)) }),
	invalid,
	as(openRun),
	as(refused),
	is(lifecycle.ErrOutcomeUnknown, func() *Problem {
		return problem("outcome_unknown", "The connection broke while the change was being stored. Asking again settles it.").retry(time.Second)
	}),
	is(lifecycle.ErrUnavailable, unavailable),
	is(auth.ErrKeysUnavailable, unavailable),
	is(context.DeadlineExceeded, late),
	is(context.Canceled, late),
}

// row describes the errors that it knows and returns nil for all others.
type row func(err error) *Problem

func as[E error](describe func(E) *Problem) row {
	return func(err error) *Problem {
		if e, ok := errors.AsType[E](err); ok {
			return describe(e)
		}
		return nil
	}
}

func is(target error, describe func() *Problem) row {
	return func(err error) *Problem {
		if errors.Is(err, target) {
			return describe()
		}
		return nil
	}
}

// describe finds err in the table. Whatever is not there is our own fault and says nothing of its cause.
func describe(err error) *Problem {
	for _, known := range table {
		if p := known(err); p != nil {
			return p
		}
	}
	return problem("internal", "The request was not at fault. The log knows more under this requestId.")
}

// sentence makes one of an error's text.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

func unavailable() *Problem {
	return problem("unavailable", "The service is busy, or a part that it needs is down. Nothing was changed.").retry(2 * time.Second)
}

// late promises less than unavailable: how far the work had come is not known here.
func late() *Problem {
	return problem("unavailable", "The answer did not come in time. Ask again.").retry(2 * time.Second)
}

// invalid reports every InvalidError in err's tree at once.
func invalid(err error) *Problem {
	found := all[*lifecycle.InvalidError](err)
	if len(found) == 0 {
		return nil
	}
	p := problem("invalid_field", found[0].Error())
	if len(found) > 1 {
		p.Detail = fmt.Sprintf("%d fields are not acceptable.", len(found))
	}
	for _, e := range found {
		p.at(e.Field, e.Reason)
	}
	return p
}

func openRun(e *lifecycle.OpenRunError) *Problem {
	p := problem("open_run", "This node has an open run already. Wait for it, or cancel it first.")
	p.Conflict = conflict(e.Existing)
	p.ExistingID = e.Existing.ID
	return p.with("Location", RunPath(e.Existing))
}

func refused(e *lifecycle.RefusedError) *Problem {
	p := problem(string(e.Code), e.Reason)
	p.Conflict = conflict(e.Run)
	return p
}
