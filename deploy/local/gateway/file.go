package gateway

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	kubejson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const (
	gatewayName = "framerun" // the Gateway that the routes belong to
	servicePort = 80         // of every Service
)

// parse returns the rules of a file of HTTPRoute documents, in order of precedence.
func parse(file []byte) ([]rule, error) {
	var rules []rule
	for i, doc := range documents(file) {
		route, err := decode(doc)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		more, err := read(route)
		if err != nil {
			return nil, fmt.Errorf("document %d, %s %q: %w", i+1, route.Kind, route.Name, err)
		}
		rules = append(rules, more...)
	}
	if len(rules) == 0 {
		return nil, errors.New("there are none")
	}
	order(rules)
	return rules, nil
}

// documents splits a YAML stream at its --- lines. decode refuses what is left of a stream written in a fancier way.
func documents(file []byte) [][]byte {
	var docs [][]byte
	var doc []byte
	for line := range bytes.Lines(file) {
		if string(bytes.TrimRight(line, " \r\n")) == "---" {
			docs, doc = append(docs, doc), nil
			continue
		}
		doc = append(doc, line...)
	}
	return append(docs, doc)
}

// ofStream finds the marks that make one document two. The YAML decoder would read the first and keep silent about the rest.
var ofStream = regexp.MustCompile(`(?m)^(---|\.\.\.|%)`)

// decode reads one document as the Kubernetes API server does: no unknown, duplicate or wrongly spelled member.
func decode(doc []byte) (route gatewayv1.HTTPRoute, err error) {
	if mark := ofStream.Find(doc); mark != nil {
		return route, fmt.Errorf("a line begins with %s; only --- alone on its line separates documents", mark)
	}
	text, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return route, err
	}
	faults, err := kubejson.UnmarshalStrict(text, &route)
	return route, errors.Join(append(faults, err)...)
}

// read turns a route into rules. It takes out of its copy of the route what it understands: whatever is then left stands in the
// file and would have no effect.
func read(route gatewayv1.HTTPRoute) ([]rule, error) {
	if route.Kind != "HTTPRoute" || route.APIVersion != gatewayv1.GroupVersion.String() {
		return nil, fmt.Errorf("only HTTPRoute of %s is implemented, not %q", gatewayv1.GroupVersion, route.APIVersion+" "+route.Kind)
	}
	if route.Name == "" {
		return nil, errors.New("metadata.name is missing")
	}
	if !reflect.DeepEqual(route.Spec.ParentRefs, []gatewayv1.ParentReference{{Name: gatewayName}}) {
		return nil, fmt.Errorf("parentRefs must be the Gateway %s and nothing else", gatewayName)
	}
	var rules []rule
	for i, r := range route.Spec.Rules {
		more, err := readRule(r)
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		for _, m := range more {
			m.route = route.Name
			rules = append(rules, m)
		}
	}
	route.Kind, route.APIVersion, route.Name = "", "", ""
	route.Spec.ParentRefs, route.Spec.Rules = nil, nil
	return rules, nothingIn(route)
}

// noTimeout is the one timeout that this gateway knows.
var noTimeout = &gatewayv1.HTTPRouteTimeouts{Request: new(gatewayv1.Duration("0s"))}

// readRule turns a route's rule into one of ours for each of its matches.
func readRule(r gatewayv1.HTTPRouteRule) ([]rule, error) {
	backend, err := readBackend(r.BackendRefs)
	if err != nil {
		return nil, err
	}
	matches := r.Matches
	if len(matches) == 0 { // the API's default
		matches = []gatewayv1.HTTPRouteMatch{{}}
	}
	var rules []rule
	for i, m := range matches {
		one, err := readMatch(m)
		if err != nil {
			return nil, fmt.Errorf("match %d: %w", i+1, err)
		}
		one.backend = backend
		rules = append(rules, one)
	}
	if reflect.DeepEqual(r.Timeouts, noTimeout) {
		r.Timeouts = nil
	}
	r.Matches, r.BackendRefs = nil, nil
	return rules, nothingIn(r)
}

// readBackend returns the name of the one Service that a rule leads to.
func readBackend(refs []gatewayv1.HTTPBackendRef) (string, error) {
	if len(refs) != 1 {
		return "", fmt.Errorf("%d backendRefs; only one is implemented", len(refs))
	}
	ref := refs[0]
	name, port := string(ref.Name), ref.Port
	if name == "" || port == nil || *port != servicePort {
		return "", fmt.Errorf("backendRefs must be the name of a Service and port %d", servicePort)
	}
	ref.Name, ref.Port = "", nil
	return name, nothingIn(ref)
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete,
	http.MethodConnect, http.MethodOptions, http.MethodTrace, http.MethodPatch,
}

// readMatch returns a match as a rule without route and backend.
func readMatch(m gatewayv1.HTTPRouteMatch) (rule, error) {
	one := rule{kind: gatewayv1.PathMatchPathPrefix, path: "/"} // the API's default
	if m.Path != nil && m.Path.Type != nil {
		one.kind = *m.Path.Type
	}
	if m.Path != nil && m.Path.Value != nil {
		one.path = *m.Path.Value
	}
	if m.Method != nil {
		one.method = string(*m.Method)
		if !slices.Contains(methods, one.method) {
			return rule{}, fmt.Errorf("method %q does not exist", one.method)
		}
	}
	m.Path, m.Method = nil, nil
	return one, errors.Join(one.prepare(), nothingIn(m))
}

// prepare checks a rule's path and makes it ready for matching.
func (r *rule) prepare() (err error) {
	switch r.kind {
	case gatewayv1.PathMatchRegularExpression: // RE2, and the whole path, as in Envoy
		r.regexp, err = regexp.Compile(`^(?:` + r.path + `)$`)
		return err
	case gatewayv1.PathMatchExact, gatewayv1.PathMatchPathPrefix:
		if !strings.HasPrefix(r.path, "/") {
			return fmt.Errorf("path %q must begin with a slash", r.path)
		}
		if r.kind == gatewayv1.PathMatchPathPrefix {
			r.path = strings.TrimSuffix(r.path, "/")
		}
		return nil
	}
	return fmt.Errorf("path type %q does not exist", r.kind)
}

// nothingIn reports what is left in v after all that is implemented was taken out.
func nothingIn(v any) error {
	if reflect.ValueOf(v).IsZero() {
		return nil
	}
	text, err := json.Marshal(v, json.OmitZeroStructFields(true))
	if err != nil {
		return err
	}
	return fmt.Errorf("not implemented: %s", text)
}
