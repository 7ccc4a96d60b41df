package web

import (
	"fmt"
	"strings"
	"time"
)

// MalformedError says that a request cannot be read at all, in contrast to lifecycle.InvalidError: read, but meaningless.
type MalformedError struct {
	Field  string // JSON pointer into the body ("" is the whole of it), or the name of a query parameter or header
	Reason string // for the caller: what is wrong and what would be right
}

func (e *MalformedError) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + ": " + e.Reason
}

// TooLargeError says that a body is longer than Limit bytes.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the body is longer than %d bytes", e.Limit)
}

// UnsupportedMediaTypeError says that a body is not plain application/json.
type UnsupportedMediaTypeError struct{ Reason string }

func (e *UnsupportedMediaTypeError) Error() string { return e.Reason }

// MethodNotAllowedError says that the path exists, for other methods.
type MethodNotAllowedError struct{ Allow []string }

func (e *MethodNotAllowedError) Error() string { return "allowed here: " + allowList(e.Allow) }

// allowList writes methods the way the Allow header wants them.
func allowList(methods []string) string { return strings.Join(methods, ", ") }

// RateLimitedError says that this caller has asked too often.
type RateLimitedError struct{ RetryAfter time.Duration }

func (e *RateLimitedError) Error() string {
	return fmt.Sprintf("too many requests; again in %s", e.RetryAfter)
}

// all collects the errors of type E in err's tree, in the order in which they were joined.
func all[E error](err error) []E {
	if e, ok := err.(E); ok {
		return []E{e}
	}
	var found []E
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		return all[E](wrapper.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range wrapper.Unwrap() {
			found = append(found, all[E](inner)...)
		}
	}
	return found
}
