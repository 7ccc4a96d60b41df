package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Query reads the query string strictly: each allowed parameter at most once, and nothing else. net/url alone would silently
// drop a pair with a raw `;` or a bad escape, and a filter that vanishes shows a caller what it did not ask for.
func Query(r *http.Request, allowed ...string) (url.Values, error) {
	values := url.Values{}
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, value, reason := readPair(pair, rawName, rawValue)
		switch {
		case reason != "":
		case !slices.Contains(allowed, name):
			reason = unknownParameter(allowed)
		case values.Has(name):
			reason = "stands more than once"
		}
		if reason != "" {
			return nil, &MalformedError{Field: parameterName(rawName), Reason: reason}
		}
		values.Set(name, value)
	}
	return values, nil
}

// readPair undoes the escapes of a pair, or says why it cannot.
func readPair(pair, rawName, rawValue string) (name, value, reason string) {
	if strings.Contains(pair, ";") {
		return "", "", "holds a raw semicolon; write it as %3B"
	}
	name, nameErr := url.QueryUnescape(rawName)
	value, valueErr := url.QueryUnescape(rawValue)
	switch {
	case nameErr != nil || valueErr != nil:
		return "", "", "holds a broken percent escape; a percent sign itself is %25"
	case !utf8.ValidString(name) || !utf8.ValidString(value):
		return "", "", "is not valid UTF-8"
	case strings.ContainsRune(name+value, 0):
		return "", "", "holds a NUL character"
	}
	return name, value, ""
}

func unknownParameter(allowed []string) string {
	if len(allowed) == 0 {
		return "unknown parameter; none is taken here"
	}
	return "unknown parameter; allowed are " + strings.Join(allowed, ", ")
}

// parameterName is how a refusal calls a parameter: as it was sent, but not at any length, and never like a pointer.
func parameterName(raw string) string {
	if len(raw) > maxEcho || raw == "" || strings.HasPrefix(raw, "/") {
		return "query"
	}
	return strings.ToValidUTF8(raw, "\uFFFD")
}
