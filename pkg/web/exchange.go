package web

import (
	"context"
	"log/slog"
	"net/http"
	"regexp"
	"uuid"
)

// exchange is what is known of one request while it is being answered. Wrap makes it, the layers below fill it in and the
// request's line in the log is written from it. It belongs to the request's own goroutine.
type exchange struct {
	requestID string
	trace     trace
	route     string // the pattern; empty until a route was found
	status    int    // 0 until the answer has begun
	bytes     int64
	code      string // of the problem document
	cause     error  // what the log may know and the client may not
	notes     []slog.Attr
	place     *place // among the requests in flight; nil where they are not bounded
}

type exchangeKey struct{}

// exchangeOf never returns nil: a handler that is called without Wrap writes into a record that nobody reads.
func exchangeOf(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{}
}

// begin opens the record of r and puts it into the request's context.
func begin(r *http.Request) (*exchange, *http.Request) {
	x := &exchange{requestID: requestID(r), trace: traceOf(r)}
	return x, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
}

// RequestID is the id by which log lines, the X-Request-Id header and problem documents call the request of ctx.
func RequestID(ctx context.Context) string { return exchangeOf(ctx).requestID }

// Note adds a word to the line that the log will hold of this request, for example "caller" and a subject or "run" and an id.
// Never note tokens, signatures or anything that a person wrote. Only for the goroutine that answers the request.
func Note(ctx context.Context, key string, value any) {
	x := exchangeOf(ctx)
	x.notes = append(x.notes, slog.Any(key, value))
}

var acceptableID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// requestID keeps the id that a caller sent if it is one plain word, and makes a UUIDv7 otherwise.
func requestID(r *http.Request) string {
	if sent := r.Header.Values("X-Request-Id"); len(sent) == 1 && acceptableID.MatchString(sent[0]) {
		return sent[0]
	}
	return uuid.NewV7().String()
}

// recorder notes what of the answer has left. Unwrap lets http.ResponseController reach the connection.
type recorder struct {
	http.ResponseWriter
	x *exchange
}

func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) WriteHeader(status int) {
	if w.x.status == 0 && status >= 200 {
		w.x.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	if w.x.status == 0 {
		w.x.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.x.bytes += int64(n)
	return n, err
}
