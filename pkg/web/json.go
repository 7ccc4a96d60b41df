package web

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds how deep a body may nest.
const maxDepth = 32

// Body reads a request's JSON object into a T, strictly: one document of at most limit bytes, plain application/json in UTF-8,
// no member twice, unknown or in another case. T is a struct of pointers, so that an absent member (or null, which means the
// same) can be told from an empty one.
//
// Errors: *TooLargeError, *UnsupportedMediaTypeError, *MalformedError, and lifecycle.ErrUnavailable after a slow body, see Options.
func Body[T any](r *http.Request, limit int64) (T, error) {
	raw, err := RawBody(r, limit)
	if err != nil {
		var none T
		return none, err
	}
	return Decode[T](raw)
}

// EmptyBody checks that the body of a verb that needs none is absent or an empty JSON object.
func EmptyBody(r *http.Request) error {
	raw, err := RawBody(r, 1024)
	if err != nil || len(raw) == 0 {
		return err
	}
	_, err = Decode[struct{}](raw)
	return err
}

// RawBody reads a JSON body of at most limit bytes without looking into it, for a signature or a fingerprint. It is empty if
// none was sent.
func RawBody(r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, &TooLargeError{Limit: limit}
	}
	back := exchangeOf(r.Context()).place.lend(r.Context())
	raw, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	noPlace := back()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &MalformedError{Reason: "the body did not arrive in time"}
	case err != nil:
		return nil, &MalformedError{Reason: "the body ends before its announced length or is badly framed"}
	case int64(len(raw)) > limit:
		return nil, &TooLargeError{Limit: limit}
	case noPlace != nil:
		return nil, noPlace
	case len(raw) == 0:
		return nil, nil
	}
	return raw, mediaType(r.Header)
}

// mediaType accepts application/json, which is UTF-8 by definition, and nothing that would have to be decoded first.
func mediaType(h http.Header) error {
	if len(h.Values("Content-Encoding")) > 0 {
		return &UnsupportedMediaTypeError{Reason: "A Content-Encoding is not taken. Send the body as it is."}
	}
	sent := h.Values("Content-Type")
	if len(sent) != 1 {
		return &UnsupportedMediaTypeError{Reason: "A body needs exactly one Content-Type: application/json."}
	}
	kind, parameters, err := mime.ParseMediaType(sent[0])
	charset, hasCharset := parameters["charset"]
	delete(parameters, "charset")
	if err != nil || kind != "application/json" || len(parameters) > 0 || hasCharset && !strings.EqualFold(charset, "utf-8") {
		return &UnsupportedMediaTypeError{Reason: "The Content-Type must be application/json, with no parameter but charset=utf-8."}
	}
	return nil
}

// Decode is Body for bytes that have been read already.
func Decode[T any](raw []byte) (T, error) {
	var value, none T
	if err := wellFormed(raw); err != nil {
		return none, err
	}
	if err := json.Unmarshal(raw, &value, json.RejectUnknownMembers(true)); err != nil {
		return none, malformed(err)
	}
	return value, nil
}

// wellFormed checks what encoding/json/v2 would let pass or would say less clearly, before any value is made.
func wellFormed(raw []byte) error {
	switch {
	case len(bytes.TrimLeft(raw, " \t\r\n")) == 0:
		return &MalformedError{Reason: "a JSON object is required, and there is no body"}
	case bytes.HasPrefix(raw, []byte("\uFEFF")):
		return &MalformedError{Reason: "the body begins with a byte order mark; JSON has none (RFC 8259 §8.1)"}
	case !utf8.Valid(raw):
		return &MalformedError{Reason: fmt.Sprintf("the body is not valid UTF-8 from byte %d on", validPrefix(raw))}
	}
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	if kind := d.PeekKind(); kind != jsontext.KindBeginObject && kind != jsontext.KindInvalid {
		return &MalformedError{Reason: "expected an object, got " + kindWord(kind)}
	}
	for more := true; more; more = d.StackDepth() > 0 {
		if _, err := d.ReadToken(); err != nil {
			return malformed(err)
		}
		if d.StackDepth() > maxDepth {
			return &MalformedError{Reason: fmt.Sprintf("the body nests deeper than %d levels", maxDepth)}
		}
	}
	return nil
}

func validPrefix(raw []byte) int {
	at := 0
	for at < len(raw) {
		r, size := utf8.DecodeRune(raw[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}
