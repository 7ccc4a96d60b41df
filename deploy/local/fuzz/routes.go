package fuzz

import (
	"fmt"
	"net/http"
)

// route is one entry of the suite's table of routes.
type route struct {
	name, service, method string
	kind                  string                   // empty: any
	tail                  string                   // behind the run's path; "-": the list
	members               func(*generator, *draft) // of the body; nil: the verb needs none
	headers               func(*generator, *entry) []Field
	query                 func(*generator, *draft) string
	weight                int
}

var (
	createDesign = &route{name: "create wf2des", service: "intake", method: "POST", kind: "wf2des", tail: "-", members: designMembers,
		headers: createHeaders, weight: 8}
	createCode = &route{name: "create code2wf", service: "intake", method: "POST", kind: "code2wf", tail: "-", members: codeMembers,
		headers: createHeaders, weight: 3}
	getRun   = &route{name: "get", service: "query", method: "GET", headers: readHeaders, weight: 9}
	headRun  = &route{name: "head", service: "query", method: "HEAD", headers: readHeaders, weight: 2}
	listRuns = &route{name: "list", service: "query", method: "GET", tail: "-", query: listQuery, weight: 7}
	timeline = &route{name: "timeline", service: "query", method: "GET", tail: "/timeline", weight: 5}
	result   = &route{name: "result", service: "query", method: "GET", tail: "/result", weight: 3}
	confirm  = &route{name: "confirm", service: "interaction", method: "POST", kind: "wf2des", tail: "/confirm", members: confirmMembers,
		weight: 5}
	cancel   = &route{name: "cancel", service: "interaction", method: "POST", kind: "wf2des", tail: "/cancel", weight: 2}
	feedback = &route{name: "feedback", service: "interaction", method: "POST", kind: "wf2des", tail: "/feedback",
		members: feedbackMembers, weight: 4}
	placement = &route{name: "placement", service: "interaction", method: "POST", tail: "/placement", weight: 4}
	remove    = &route{name: "delete", service: "interaction", method: "DELETE", weight: 2}
	webhook   = &route{name: "ai-status", service: "status", method: "POST", members: wordMembers, weight: 12}
	preflight = &route{name: "preflight", service: "query", method: "OPTIONS", headers: preflightHeaders, weight: 1}
)

var routes = []*route{createDesign, createCode, getRun, headRun, listRuns, timeline, result, confirm, cancel, feedback, placement, remove,
	webhook, preflight}

// weighed holds each route as often as it weighs.
var weighed = func() (all []*route) {
	for _, r := range routes {
		for range r.weight {
			all = append(all, r)
		}
	}
	return all
}()

// choice is what the next request is about.
type choice struct {
	route  *route
	run    *entry // nil before there is one
	tenant tenant
}

// choose takes, more often than not, the step that comes next in some run's life, so that lives are lived to their end.
func (g *generator) choose() choice {
	c := choice{route: pick(g, weighed), tenant: pick(g, g.people.tenants)}
	if len(g.book.recent) == 0 {
		c.route = createDesign
		return c
	}
	if c.route.tail == "-" {
		return c
	}
	c.run = pick(g, g.book.recent)
	c.tenant = c.run.tenant
	if g.chance(50) {
		c.route = g.natural(c.run)
	}
	return c
}

// natural is a route that leads on from the state that the run is in.
func (g *generator) natural(e *entry) *route {
	switch {
	case e.phase == "awaiting_confirm":
		return pick(g, []*route{confirm, confirm, confirm, confirm, webhook, cancel})
	case e.open() && e.kind == "wf2des":
		return pick(g, []*route{webhook, webhook, webhook, webhook, webhook, webhook, cancel})
	case e.open():
		return webhook
	case e.status == "completed":
		return pick(g, []*route{placement, feedback, result, timeline, getRun, remove})
	}
	return pick(g, []*route{timeline, getRun, remove, webhook, cancel})
}

// expected are the statuses of a request that nothing is wrong with.
func (g *generator) expected(c choice) []int {
	switch {
	case c.route.tail == "-" && c.route.method == http.MethodPost:
		return []int{201, 409, 422, 429} // 422: a key that has made another run
	case c.route == preflight:
		return []int{204}
	case c.route.tail == "-":
		return []int{200, 400, 422} // filters are anybody's guess
	case !c.exists():
		return []int{404, 405}
	case c.route == webhook:
		return []int{200, 409, 422}
	case c.run.deleted && c.route != remove:
		return []int{404}
	case c.route == getRun || c.route == headRun:
		return []int{200, 204, 304}
	}
	return []int{200, 409}
}

// exists reports whether there is such a route for runs of this kind.
func (c choice) exists() bool {
	return c.route.tail == "-" || c.run != nil && (c.route.kind == "" || c.route.kind == c.run.kind)
}

// path is where the route leads for a run of a tenant.
func (r *route) path(g *generator, e *entry, t tenant) []string {
	switch {
	case r == webhook:
		return []string{"v1", "ai-status"}
	case r.tail == "-":
		kind := r.kind
		if kind == "" {
			kind = pick(g, []string{"wf2des", "wf2des", "code2wf"})
		}
		return []string{"v1", "projects", fmt.Sprint(t.project), kind}
	}
	path := []string{"v1", "projects", fmt.Sprint(t.project), e.kind, e.id}
	if r.tail != "" {
		path = append(path, r.tail[1:])
	}
	return path
}
