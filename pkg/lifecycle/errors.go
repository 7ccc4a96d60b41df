package lifecycle

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound: there is no such run, or not for this caller. The two are never told apart.
	ErrNotFound = errors.New("no such run")

	// ErrOutcomeUnknown: the connection broke while the change was being committed, so it may or may not stand.
	// Asking again converges on one outcome.
	ErrOutcomeUnknown = errors.New("it is not known whether the change was stored")

	// ErrUnavailable: a dependency is down or overloaded and nothing was changed. Worth another try.
	ErrUnavailable = errors.New("temporarily unavailable")

	// ErrUndeliverable: a destination will never take this message, however often it is sent.
	ErrUndeliverable = errors.New("this can never be delivered")

	// ErrTooEarly: a destination cannot take this message yet, though nothing is wrong with it: somebody else has to act first.
	ErrTooEarly = errors.New("it is too early to deliver this")

	// ErrOutdated: a destination has moved on, and this message means nothing to it any more.
	ErrOutdated = errors.New("this is outdated")

	// ErrKeyReused: the caller has used this Idempotency-Key for another request.
	ErrKeyReused = errors.New("this Idempotency-Key was used for another request")

	// ErrKeyInFlight: the first request with this Idempotency-Key has not been answered yet.
	ErrKeyInFlight = errors.New("the first request with this Idempotency-Key is still being answered")

	// ErrUnknownUser: the platform does not know the subject that signed in.
	ErrUnknownUser = errors.New("the platform does not know this user")
)

// InvalidError says that one member of a request can be read but makes no sense.
type InvalidError struct {
	Field  string // JSON pointer into the body ("/screenId"), or the name of a parameter
	Reason string // a sentence for the caller: what is wrong and what would be right
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason }

// OpenRunError says that the node already has an open run of the same edge (seed: wf2des_open_generation_uq).
type OpenRunError struct {
	Existing Run // the run that stands there, as it was at some instant of the request
}

func (e *OpenRunError) Error() string {
	return fmt.Sprintf("run %s is still open for this node", e.Existing.ID)
}

// Refusal is the stable code of a RefusedError.
type Refusal string

const (
	// StateConflict: the run has moved on; the command is not among what it allows now.
	StateConflict Refusal = "state_conflict"
	// PhaseConflict: a worker tried to complete a run whose phase does not lead there, for example past the designer.
	PhaseConflict Refusal = "phase_conflict"
	// AttemptMismatch: the command speaks of another attempt than the one that runs.
	AttemptMismatch Refusal = "attempt_mismatch"
)

// RefusedError says that the run's state does not allow the command. Nothing was changed.
type RefusedError struct {
	Code   Refusal
	Run    Run // the run as it is, so that the caller can be told
	Reason string
}

func (e *RefusedError) Error() string { return string(e.Code) + ": " + e.Reason }
