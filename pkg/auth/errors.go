package auth

import (
	"errors"
	"fmt"
)

// ErrKeysUnavailable says that no key set of the pool could be had since the start, so no token can be judged. It is the
// pool's endpoint that failed, not the caller: worth another try. Once a set was loaded this error does not occur.
var ErrKeysUnavailable = errors.New("auth: the user pool's signing keys cannot be had")

// UnauthenticatedError says that the request does not prove who sent it.
type UnauthenticatedError struct {
	Reason string // what is wrong, fit to be shown to the caller: no part of a token, signature or secret
}

func (e *UnauthenticatedError) Error() string { return "auth: unauthenticated: " + e.Reason }

// ForbiddenError says that the caller is known to be who they say, and may not do this.
type ForbiddenError struct {
	Reason string // fit to be shown to the caller
}

func (e *ForbiddenError) Error() string { return "auth: forbidden: " + e.Reason }

func unauthenticated(format string, args ...any) error {
	return &UnauthenticatedError{Reason: fmt.Sprintf(format, args...)}
}
