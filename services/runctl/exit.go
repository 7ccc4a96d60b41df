package main

import (
	"errors"
	"fmt"

	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/events"
	"framerun.dev/pkg/jobs"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

// Exit codes, for scripts. They are told in the help of runctl itself and do not change.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitRefused     = 4
	exitUnavailable = 5
	exitUnknown     = 6
)

// usageError says that the command line, or what it names, makes no sense.
type usageError struct{ reason string }

func (e *usageError) Error() string { return e.reason }

func usage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// refusedError says that what was asked for is not possible as things are.
type refusedError struct{ reason string }

func (e *refusedError) Error() string { return e.reason }

func refused(format string, args ...any) error { return &refusedError{fmt.Sprintf(format, args...)} }

// errUnreachable: something is not there to be asked.
var errUnreachable = fmt.Errorf("cannot be reached: %w", lifecycle.ErrUnavailable)

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitDone
	case is[*usageError](err), is[*lifecycle.InvalidError](err):
		return exitUsage
	case is[*refusedError](err), is[*lifecycle.RefusedError](err), is[*store.EntryRefusedError](err):
		return exitRefused
	case errors.Is(err, lifecycle.ErrNotFound), errors.Is(err, store.ErrNoEntry), errors.Is(err, jobs.ErrNoQueue), errors.Is(err, events.ErrNoFeed):
		return exitNotFound
	case errors.Is(err, lifecycle.ErrOutcomeUnknown):
		return exitUnknown
	case errors.Is(err, lifecycle.ErrUnavailable), errors.Is(err, auth.ErrKeysUnavailable):
		return exitUnavailable
	}
	return exitFailed
}

// sentence is what the operator reads.
func sentence(err error) string {
	if r, ok := errors.AsType[*lifecycle.RefusedError](err); ok {
		return "refused: " + r.Reason
	}
	switch exitCode(err) {
	case exitRefused:
		return "refused: " + err.Error()
	case exitUnknown:
		return err.Error() + "; look with `runctl runs show`, then try again"
	case exitUnavailable:
		return err.Error() + "; try again"
	}
	return err.Error()
}
