package fuzz

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// staleAtMost is how old a view may be for somebody who does not show what they have seen.
const staleAtMost = 5 * time.Second

// catchUp asks again while the answer is older than what this worker has been told: NATS may be slower than the worker. Who shows the
// newest version is never shown an older one, so such an answer stands, for the judge.
func (w *worker) catchUp(r *Request, reply *Reply) (*Reply, error) {
	for deadline := time.Now().Add(staleAtMost); w.book.behind(r, reply) && time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		var err error
		if reply, err = w.wires[r.Service].exchange(r); err != nil {
			return nil, err
		}
	}
	return reply, nil
}

// behind reports whether a read was answered with an older version than the book knows.
func (b *book) behind(r *Request, reply *Reply) bool {
	route := routeForm.FindStringSubmatch(r.path())
	if route == nil || route[4] != "" || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	e := b.runs[route[3]]
	tag := reply.Header.Get("ETag")
	if e == nil || tag == "" || !e.stale && strings.Contains(strings.Join(r.values("If-None-Match"), ","), e.etag()) {
		return false
	}
	digits := strings.TrimSuffix(strings.TrimPrefix(tag, `"`+e.id+"."), `"`)
	micros, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return false
	}
	at := time.UnixMicro(micros)
	return e.deleted || at.Before(e.changed) || e.stale && at.Equal(e.changed)
}
