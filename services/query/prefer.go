package main

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// longestWait bounds Prefer: wait; who asks for more is told what was applied.
const longestWait = 25 * time.Second

// preferredWait reads wait=N, in seconds, from the Prefer headers (RFC 7240). As that RFC wants, a preference that cannot be read
// is ignored, and of two the first counts.
func preferredWait(r *http.Request) time.Duration {
	for _, header := range r.Header.Values("Prefer") {
		for preference := range strings.SplitSeq(header, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(strings.SplitN(preference, ";", 2)[0]), "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
			switch {
			case errors.Is(err, strconv.ErrRange): // it can be read, and is very long
				return longestWait
			case err != nil:
				return 0
			}
			return min(time.Duration(seconds)*time.Second, longestWait)
		}
	}
	return 0
}

// refusedWeight is a q of zero: not this (RFC 9110 §12.4.2).
var refusedWeight = regexp.MustCompile(`(^|;)\s*q=0(\.0{0,3})?\s*($|;)`)

// wantsStream reports whether the caller asks for Server-Sent Events.
func wantsStream(r *http.Request) bool {
	for _, header := range r.Header.Values("Accept") {
		for media := range strings.SplitSeq(header, ",") {
			name, weight, _ := strings.Cut(media, ";")
			if strings.EqualFold(strings.TrimSpace(name), "text/event-stream") {
				return !refusedWeight.MatchString(weight)
			}
		}
	}
	return false
}
