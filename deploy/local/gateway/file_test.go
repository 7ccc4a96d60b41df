package gateway

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
)

// route writes an HTTPRoute with one rule, whose lines are given.
func route(name string, ruleLines ...string) string {
	return "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: " + name + "}\n" +
		"spec:\n  parentRefs: [{name: framerun}]\n  rules:\n    - " + strings.Join(ruleLines, "\n      ") + "\n"
}

// to is the rule's line that leads to a Service.
func to(service string) string { return fmt.Sprintf("backendRefs: [{name: %s, port: 80}]", service) }

// on is the rule's line of one match.
func on(kind, path, method string) string {
	m := fmt.Sprintf("path: {type: %s, value: %q}", kind, path)
	if method != "" {
		m += ", method: " + method
	}
	return "matches: [{" + m + "}]"
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		docs         []string
		method, path string
		want         string
	}{
		"exact before expression": {
			[]string{route("a", on("RegularExpression", "/a.*", "GET"), to("wrong")), route("b", on("Exact", "/a", ""), to("right"))},
			"GET", "/a", "right"},
		"expression before prefix": {
			[]string{route("a", on("PathPrefix", "/abc/def/ghi", "GET"), to("wrong")), route("b", on("RegularExpression", "/.*", ""), to("right"))},
			"GET", "/abc/def/ghi", "right"},
		"longer expression": {
			[]string{route("a", on("RegularExpression", "/.*", "GET"), to("wrong")), route("b", on("RegularExpression", "/a/.*", ""), to("right"))},
			"GET", "/a/b", "right"},
		"longer prefix, method or not": {
			[]string{route("a", on("PathPrefix", "/a", "GET"), to("wrong")), route("b", on("PathPrefix", "/a/b", ""), to("right"))},
			"GET", "/a/b/c", "right"},
		"a slash at the end does not make a prefix longer": {
			[]string{route("a", on("PathPrefix", "/a/", ""), to("wrong")), route("b", on("PathPrefix", "/a", "GET"), to("right"))},
			"GET", "/a/b", "right"},
		"method before none": {
			[]string{route("a", on("Exact", "/a", ""), to("wrong")), route("b", on("Exact", "/a", "GET"), to("right"))},
			"GET", "/a", "right"},
		"name of the route": {
			[]string{route("b", on("Exact", "/a", ""), to("wrong")), route("a", on("Exact", "/a", ""), to("right"))},
			"GET", "/a", "right"},
		"first of a route": {
			[]string{route("a", on("Exact", "/a", ""), to("right")) + "    - " + on("Exact", "/a", "") + "\n      " + to("wrong")},
			"GET", "/a", "right"},
		"second match of a rule": {
			[]string{route("a", "matches: [{method: PUT}, {method: GET}]", to("right"))},
			"GET", "/a", "right"},
		"no match is every request": {[]string{route("a", to("right"))}, "BREW", "//", "right"},
		"a path's default kind":     {[]string{route("a", "matches: [{path: {value: /a}}]", to("right"))}, "GET", "/a/b", "right"},
		"prefix itself":             {[]string{route("a", on("PathPrefix", "/a/", ""), to("right"))}, "GET", "/a", "right"},
		"prefix of a segment":       {[]string{route("a", on("PathPrefix", "/a", ""), to("wrong"))}, "GET", "/ab", ""},
		"exact is exact":            {[]string{route("a", on("Exact", "/a", ""), to("wrong"))}, "GET", "/a/", ""},
		"expression of a part":      {[]string{route("a", on("RegularExpression", "/a|/b", ""), to("wrong"))}, "GET", "/a/b", ""},
		"another method":            {[]string{route("a", on("Exact", "/a", "GET"), to("wrong"))}, "HEAD", "/a", ""},
	} {
		rules, err := parse([]byte(strings.Join(test.docs, "---\n")))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, _ := match(rules, test.method, test.path); got != test.want {
			t.Errorf("%s: %s %s goes to %q; want %q", name, test.method, test.path, got, test.want)
		}
	}
}

// What production would do and this gateway would not must not start here.
func TestRefusesWhatItDoesNotDo(t *testing.T) {
	t.Parallel()
	good := route("a", on("Exact", "/a", "GET"), to("query"))
	change := func(from, to string) string {
		if !strings.Contains(good, from) {
			t.Fatalf("%q is not in\n%s", from, good)
		}
		return strings.Replace(good, from, to, 1)
	}
	extra := func(lines ...string) string { return route("a", append([]string{to("query")}, lines...)...) }
	for name, test := range map[string]struct{ file, want string }{
		"nothing":                      {"", "not \" \""},
		"another kind":                 {change("HTTPRoute", "GRPCRoute"), "only HTTPRoute"},
		"another version":              {change("k8s.io/v1", "k8s.io/v1beta1"), "only HTTPRoute"},
		"no name":                      {change("metadata: {name: a}", "metadata: {}"), "metadata.name"},
		"a namespace":                  {change("{name: a}", "{name: a, namespace: b}"), `"namespace":"b"`},
		"another Gateway":              {change("framerun", "other"), "parentRefs"},
		"a listener":                   {change("name: framerun", "name: framerun, sectionName: x"), "parentRefs"},
		"hostnames":                    {change("spec:\n", "spec:\n  hostnames: [a.example]\n"), `"hostnames":["a.example"]`},
		"unknown member":               {change("spec:\n", "spec:\n  colour: red\n"), `unknown field "spec.colour"`},
		"member in another case":       {change("parentRefs", "parentrefs"), `unknown field "spec.parentrefs"`},
		"member twice":                 {change("spec:\n", "kind: HTTPRoute\nspec:\n"), "already set"},
		"no rules":                     {good[:strings.Index(good, "rules:")], "there are none"},
		"broken YAML":                  {change("spec:", "spec"), "yaml"},
		"a document hidden by a mark":  {good + "--- # next\n" + good, "begins with ---"},
		"a document hidden by its end": {good + "...\n" + good, "begins with ..."},
		"second document":              {good + "---\n" + change("HTTPRoute", "Service"), "document 2"},
		"filters":                      {extra("filters: [{type: RequestMirror}]"), `"filters"`},
		"a timeout":                    {extra("timeouts: {request: 10s}"), `"timeouts"`},
		"a backend's timeout":          {extra("timeouts: {request: 0s, backendRequest: 0s}"), `"timeouts"`},
		"retry":                        {extra("retry: {attempts: 2}"), `"retry"`},
		"headers":                      {extra("matches: [{headers: [{name: a, value: b}]}]"), `"headers"`},
		"query parameters":             {extra("matches: [{queryParams: [{name: a, value: b}]}]"), `"queryParams"`},
		"no backend":                   {route("a", on("Exact", "/a", "")), "0 backendRefs"},
		"two backends":                 {change("port: 80}", "port: 80}, {name: b, port: 80}"), "2 backendRefs"},
		"another port":                 {change("port: 80", "port: 8080"), "port 80"},
		"no port":                      {change(", port: 80", ""), "port 80"},
		"a weight":                     {change("port: 80", "port: 80, weight: 1"), `"weight":1`},
		"not a Service":                {change("port: 80", "port: 80, kind: Pod"), `"kind":"Pod"`},
		"method that does not exist":   {change("GET", "get"), `method "get"`},
		"path type that is unknown":    {change("Exact", "Glob"), `path type "Glob"`},
		"path without a slash":         {change("/a", "a"), "slash"},
		"expression that is none":      {route("a", on("RegularExpression", "/(", ""), to("query")), "missing closing )"},
		"expression that is not RE2":   {route("a", on("RegularExpression", "/(?!a)", ""), to("query")), "Perl syntax"},
		"Service without a backend":    {change("name: query", "name: nobody"), "Service nobody"},
	} {
		backends := map[string][]*url.URL{"query": {{Scheme: "http", Host: "127.0.0.1:1"}}}
		_, err := New(Config{Routes: []byte(test.file), Backends: backends, Logger: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v; want %s", name, err, test.want)
		}
	}
	if _, err := parse([]byte(good + "---\n" + route("b", to("query"), "timeouts: {request: 0s}"))); err != nil {
		t.Errorf("what is implemented was refused: %v", err)
	}
}
