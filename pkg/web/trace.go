package web

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
)

// trace is the request's place in a distributed trace (W3C Trace Context, level 1).
type trace struct {
	traceparent string // ours, to hand on: the caller's trace id, a span id of our own
	id          string // the 32 hex digits that all parts of the trace share
}

// Traceparent is the value to hand on with whatever the request of ctx sets going: a message, an event, a call. It is empty
// outside of Wrap.
func Traceparent(ctx context.Context) string { return exchangeOf(ctx).trace.traceparent }

var (
	// A later version may append fields, and must keep the first four (W3C Trace Context §3.2.4).
	traceparentForm = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$`)
	noTrace         = strings.Repeat("0", 32)
	noSpan          = strings.Repeat("0", 16)
)

// traceOf goes on with the caller's trace if its header is valid and begins a new one otherwise.
func traceOf(r *http.Request) trace {
	id, flags, ok := caller(r.Header.Values("Traceparent"))
	if !ok {
		id, flags = randomHex(2), "01" // sampled: the request's log line is its record
	}
	return trace{traceparent: "00-" + id + "-" + randomHex(1) + "-" + flags, id: id}
}

// caller reads the header's trace id and its one flag that version 00 knows.
func caller(values []string) (id, flags string, ok bool) {
	if len(values) != 1 {
		return "", "", false
	}
	part := traceparentForm.FindStringSubmatch(values[0])
	if part == nil || part[1] == "ff" || part[2] == noTrace || part[3] == noSpan || part[1] == "00" && part[5] != "" {
		return "", "", false
	}
	sampled, _ := hex.DecodeString(part[4])
	return part[2], hex.EncodeToString([]byte{sampled[0] & 1}), true
}

// randomHex is for names that must be unlikely to meet and need not be secret.
func randomHex(words int) string {
	b := make([]byte, 0, 16)
	for range words {
		b = binary.BigEndian.AppendUint64(b, rand.Uint64())
	}
	return hex.EncodeToString(b)
}
