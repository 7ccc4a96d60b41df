package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
)

// turns sends a Service's requests to its backends, each to the next one, as its Endpoints would be taken in production. A request
// without a body goes on to the one after where nobody can be reached: nothing was sent yet. One with a body is its client's to repeat.
type turns struct {
	backends  []*url.URL
	transport http.RoundTripper
	taken     atomic.Uint64
}

func newTurns(backends []*url.URL, transport http.RoundTripper) (*turns, error) {
	if len(backends) == 0 {
		return nil, errors.New("there is none")
	}
	for _, b := range backends {
		if b == nil || b.Scheme == "" || b.Host == "" || strings.Trim(b.Path, "/") != "" {
			return nil, fmt.Errorf("not %q", b)
		}
	}
	return &turns{backends: backends, transport: transport}, nil
}

func (t *turns) RoundTrip(r *http.Request) (res *http.Response, err error) {
	first, all := t.taken.Add(1)-1, uint64(len(t.backends))
	for i := range all { // from there on by itself: others take turns meanwhile
		if res, err = t.transport.RoundTrip(aimed(r, t.backends[(first+i)%all])); err == nil || r.Body != nil || !unreached(err) {
			break
		}
	}
	return res, err
}

// aimed is the request with a backend's address; a RoundTripper must leave its own alone.
func aimed(r *http.Request, backend *url.URL) *http.Request {
	target := *r.URL
	target.Scheme, target.Host = backend.Scheme, backend.Host
	r = r.WithContext(r.Context())
	r.URL = &target
	return r
}

// unreached is whether a backend cannot have had any of the request.
func unreached(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
