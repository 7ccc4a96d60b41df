package web

import (
	"net/http"
	"strings"
)

const idempotencyKey = "Idempotency-Key"

// IdempotencyKey is the caller's key for this request; "" if none was sent. Error: *MalformedError for more than one, and for a key that
// is not 1 to 255 printable ASCII characters without blanks.
func IdempotencyKey(r *http.Request) (string, error) {
	keys := r.Header.Values(idempotencyKey)
	switch {
	case len(keys) == 0:
		return "", nil
	case len(keys) > 1:
		return "", &MalformedError{Field: idempotencyKey, Reason: "stands more than once"}
	case keys[0] == "" || len(keys[0]) > 255 || strings.ContainsFunc(keys[0], func(c rune) bool { return c <= ' ' || c > '~' }):
		return "", &MalformedError{Field: idempotencyKey, Reason: "must be 1 to 255 printable ASCII characters without blanks, such as a UUID"}
	}
	return keys[0], nil
}
