package gateway

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/web"
)

// newTransport has no limit for the answer, since a waiting GET and a stream set their own, and unpacks nothing.
func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 64,
		// Shorter than a service keeps idle connections: a request must not meet one that is just being closed.
		IdleConnTimeout: 5 * time.Second,
	}
}

// proxy passes requests to one Service. A client that goes away takes its request at the backend along.
func (g *Gateway) proxy(backends *turns, logger *slog.Logger) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:       rewrite,
		Transport:     backends,
		FlushInterval: -1, // each event of a stream at once
		ErrorLog:      slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		ErrorHandler:  func(w http.ResponseWriter, r *http.Request, err error) { g.refuse(w, r, failure(r, err)) },
	}
}

// rewrite keeps what the request says as it is; where it goes is said later. ReverseProxy has taken the hop-by-hop headers off and
// X-Forwarded-*, which a client may not claim.
func rewrite(p *httputil.ProxyRequest) {
	p.SetXForwarded()
	// ReverseProxy drops the parameters it cannot read. The service has to see them, to refuse them.
	p.Out.URL.RawQuery = p.In.URL.RawQuery
	// Opaque goes out as it is, while Path would be escaped anew. But net/url takes a leading // for a host; such a path goes by
	// Path, where only bytes change that no URL may hold.
	if path := rawPath(p.In); !strings.HasPrefix(path, "//") {
		p.Out.URL.Opaque = path
	}
}

// failure says what a broken exchange with a backend means to the client.
func failure(r *http.Request, err error) error {
	if b, ok := r.Body.(*body); ok && b.broken.Load() {
		return &web.MalformedError{Reason: "the body breaks off, or its chunks are malformed"}
	}
	if unreached(err) || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return fmt.Errorf("gateway: %w: %w", lifecycle.ErrUnavailable, err)
	}
	// The backend had the request and may have done what it says.
	return fmt.Errorf("gateway: %w: %w", lifecycle.ErrOutcomeUnknown, err)
}

// body remembers that it could not be read to its end, which is the client's fault and not the backend's.
type body struct {
	io.ReadCloser
	broken atomic.Bool // the transport reads in a goroutine of its own
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.broken.Store(true)
	}
	return n, err
}
