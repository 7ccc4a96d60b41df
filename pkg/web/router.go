package web

import (
	"net/http"
	"slices"

	"github.com/gorilla/mux"

	"framerun.dev/pkg/lifecycle"
)

// Router decides by path and method. It never redirects, because a 301 loses the body of a POST: a path that is not spelled
// exactly like a route (`//x`, `/x/`, `..`, `%2F`) is not found.
type Router struct {
	mux     *mux.Router
	routes  []Route
	methods []string // every method of any route, sorted: the candidates for Allow
}

// Route is what a Handler was registered for.
type Route struct{ Method, Pattern string }

// Routes are those that are answered here, in the order in which they were registered, so that a test can see that it has left
// none out.
func (rt *Router) Routes() []Route { return slices.Clone(rt.routes) }

// NewRouter returns a router that finds nothing yet.
func NewRouter() *Router {
	rt := &Router{mux: mux.NewRouter().UseEncodedPath().SkipClean(true)}
	rt.mux.NotFoundHandler = Handler(rt.unmatched)
	rt.mux.MethodNotAllowedHandler = Handler(rt.unmatched)
	return rt
}

// Handle registers h for method and pattern, in gorilla/mux's notation; path values stay escaped. A GET route answers HEAD too.
// The pattern is what log and metrics call the route.
func (rt *Router) Handle(method, pattern string, h Handler) {
	rt.routes = append(rt.routes, Route{method, pattern})
	rt.register(method, pattern, h)
}

func (rt *Router) register(method, pattern string, h Handler) {
	methods := []string{method}
	if method == http.MethodGet {
		methods = append(methods, http.MethodHead)
	}
	rt.mux.Handle(pattern, named(pattern, h)).Methods(methods...)

	rt.methods = append(rt.methods, methods...)
	slices.Sort(rt.methods)
	rt.methods = slices.Compact(rt.methods)
}

// Elsewhere says that another service of the same origin answers method on pattern, so that Allow is true for the whole path
// and not only for this service's share of it. A request that strays here all the same is refused like any other method.
func (rt *Router) Elsewhere(method, pattern string) { rt.register(method, pattern, rt.unmatched) }

func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) { rt.mux.ServeHTTP(w, r) }

// unmatched answers whatever no route wants: 404 for an unknown path, Allow for a known one.
func (rt *Router) unmatched(r *http.Request) (*Reply, error) {
	allowed := rt.allowed(r)
	switch {
	case len(allowed) == 0:
		return nil, lifecycle.ErrNotFound
	case r.Method == http.MethodOptions:
		return &Reply{Status: http.StatusNoContent, Header: http.Header{"Allow": {allowList(allowed)}}}, nil
	}
	return nil, &MethodNotAllowedError{Allow: allowed}
}

// allowed asks the router itself, once for each method: two patterns may both fit one path.
func (rt *Router) allowed(r *http.Request) []string {
	var allowed []string
	for _, method := range rt.methods {
		asked := *r
		asked.Method = method
		var match mux.RouteMatch
		if rt.mux.Match(&asked, &match) && match.MatchErr == nil {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 && !slices.Contains(allowed, http.MethodOptions) {
		allowed = append(allowed, http.MethodOptions)
	}
	return allowed
}

// named tells the request's record which route was chosen.
func named(pattern string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		exchangeOf(r.Context()).route = pattern
		h.ServeHTTP(w, r)
	})
}
