package gateway

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// rule is one match of an HTTPRoute: which requests, and which Service has them.
type rule struct {
	route   string // the HTTPRoute's name
	backend string // the Service's name
	method  string // empty: any
	kind    gatewayv1.PathMatchType
	path    string         // of a prefix without the slash at its end
	regexp  *regexp.Regexp // of a RegularExpression
}

func (r rule) matches(method, path string) bool {
	if r.method != "" && r.method != method {
		return false
	}
	switch r.kind {
	case gatewayv1.PathMatchExact:
		return path == r.path
	case gatewayv1.PathMatchPathPrefix: // whole segments: /a has /a/b but not /ab
		rest, ok := strings.CutPrefix(path, r.path)
		return ok && (rest == "" || rest[0] == '/')
	default:
		return r.regexp.MatchString(path)
	}
}

// match returns the Service that a request belongs to. The rules must be in order.
func match(rules []rule, method, path string) (backend string, ok bool) {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.matches(method, path) })
	if i < 0 {
		return "", false
	}
	return rules[i].backend, true
}

// rank puts expressions between exact paths and prefixes. The Gateway API leaves their place open; Envoy Gateway, Cilium and
// Contour put them here.
var rank = map[gatewayv1.PathMatchType]int{
	gatewayv1.PathMatchExact:             0,
	gatewayv1.PathMatchRegularExpression: 1,
	gatewayv1.PathMatchPathPrefix:        2,
}

// order sorts rules by precedence (Gateway API, HTTPRouteRule.matches): the kind of path, the longer path, a method before none,
// the route's name, the place in the file.
func order(rules []rule) {
	slices.SortStableFunc(rules, func(a, b rule) int {
		return cmp.Or(
			cmp.Compare(rank[a.kind], rank[b.kind]),
			cmp.Compare(len(b.path), len(a.path)),
			cmp.Compare(min(1, len(b.method)), min(1, len(a.method))),
			cmp.Compare(a.route, b.route),
		)
	})
}
