// Package gateway stands in for the production gateway on one machine, so that a wrong route shows here and not there: it reads
// the same route file, matches as the Kubernetes Gateway API prescribes, and passes requests on byte for byte.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/web"
)

// Config is what a Gateway needs.
type Config struct {
	Routes   []byte                // a file of HTTPRoute documents
	Backends map[string][]*url.URL // scheme, host and port of each process of each Service that the routes name
	Logger   *slog.Logger
}

// Gateway is the suite's one origin.
type Gateway struct {
	rules    []rule // the one to take precedence first
	proxies  map[string]*httputil.ReverseProxy
	refusals http.Handler
}

// New reads the routes. Whatever stands in them that this gateway does not do is an error: production would do it.
func New(c Config) (*Gateway, error) {
	rules, err := parse(c.Routes)
	if err != nil {
		return nil, fmt.Errorf("gateway: routes: %w", err)
	}
	g := &Gateway{rules: rules, proxies: map[string]*httputil.ReverseProxy{}}
	g.refusals = web.Wrap(web.Handler(refusal), web.Options{
		Service: "gateway",
		Logger:  c.Logger,
		Metrics: prometheus.NewRegistry(), // nobody scrapes this gateway
	})
	transport := newTransport()
	for _, r := range rules {
		backends, err := newTurns(c.Backends[r.backend], transport)
		if err != nil {
			return nil, fmt.Errorf("gateway: route %s: Service %s needs backends http://host:port: %w", r.route, r.backend, err)
		}
		g.proxies[r.backend] = g.proxy(backends, c.Logger)
	}
	return g, nil
}

func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	backend, ok := match(g.rules, r.Method, rawPath(r))
	if !ok || r.Method == http.MethodConnect { // a tunnel leads nowhere
		g.refuse(w, r, lifecycle.ErrNotFound)
		return
	}
	r.Body = &body{ReadCloser: r.Body}
	g.proxies[backend].ServeHTTP(w, r)
}

// rawPath is the path as it stands in the request line. To decode or clean it would make %2F and .. mean something.
func rawPath(r *http.Request) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if !strings.HasPrefix(path, "/") { // http://host/path, as a client writes to a proxy
		return "/" + strings.TrimPrefix(r.URL.EscapedPath(), "/")
	}
	return path
}

type reason struct{} // the context key of a refusal's error

// refuse answers in the services' manner, CORS headers and request id included. Only answers of the gateway's own go through
// web.Wrap: on a proxied one its headers would stand twice, and a browser takes no second Access-Control-Allow-Origin.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, err error) {
	g.refusals.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), reason{}, err)))
}

func refusal(r *http.Request) (*web.Reply, error) {
	err, ok := r.Context().Value(reason{}).(error)
	if !ok {
		return nil, errors.New("gateway: refused without a reason")
	}
	return nil, err
}
