package gateway

import (
	"net/http"
	"os"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

const (
	project = "/v1/projects/1"
	run     = "0192f0c1-2d3e-7f40-8a5b-6c7d8e9fa0b1"
	wf2des  = project + "/wf2des"
	code2wf = project + "/code2wf"
)

// publicRoutes are the routes clients may call, and next to them what looks like one and is none. What is nobody's is query's.
var publicRoutes = []struct{ method, path, service string }{
	{"POST", wf2des, "intake"},
	{"POST", code2wf, "intake"},

	{"GET", wf2des, "query"},
	{"GET", code2wf, "query"},
	{"HEAD", wf2des, "query"},
	{"GET", wf2des + "/" + run, "query"},
	{"GET", code2wf + "/" + run, "query"},
	{"HEAD", wf2des + "/" + run, "query"},
	{"GET", wf2des + "/" + run + "/timeline", "query"},
	{"GET", code2wf + "/" + run + "/timeline", "query"},
	{"GET", wf2des + "/" + run + "/result", "query"},
	{"GET", code2wf + "/" + run + "/result", "query"},

	{"POST", wf2des + "/" + run + "/confirm", "interaction"},
	{"POST", wf2des + "/" + run + "/cancel", "interaction"},
	{"POST", wf2des + "/" + run + "/feedback", "interaction"},
	{"POST", wf2des + "/" + run + "/placement", "interaction"},
	{"POST", code2wf + "/" + run + "/placement", "interaction"},
	{"DELETE", wf2des + "/" + run, "interaction"},
	{"DELETE", code2wf + "/" + run, "interaction"},
	{"DELETE", wf2des + "/not-a-uuid", "interaction"}, // what an id is, the service decides

	{"OPTIONS", wf2des, "query"},
	{"OPTIONS", wf2des + "/" + run, "query"},
	{"OPTIONS", wf2des + "/" + run + "/confirm", "query"},
	{"OPTIONS", "/nothing", "query"},

	{"POST", code2wf + "/" + run + "/confirm", "query"},
	{"POST", code2wf + "/" + run + "/cancel", "query"},
	{"POST", code2wf + "/" + run + "/feedback", "query"},
	{"POST", "/v1/ai-status", "query"},
	{"GET", "/v1/ai-status", "query"},

	{"DELETE", wf2des, "query"},
	{"PUT", wf2des + "/" + run, "query"},
	{"PATCH", wf2des + "/" + run, "query"},
	{"POST", wf2des + "/" + run, "query"},
	{"POST", wf2des + "/" + run + "/timeline", "query"},
	{"DELETE", wf2des + "/" + run + "/confirm", "query"},
	{"GET", wf2des + "/" + run + "/confirm", "query"},
	{"BREW", wf2des, "query"},
	{"post", wf2des, "query"}, // methods are case-sensitive

	{"POST", "/", "query"},
	{"POST", "/v1/projects//wf2des", "query"},
	{"POST", "/v1/projects/1/des2wf", "query"},
	{"POST", "/v1/projects/1/WF2DES", "query"},
	{"POST", "/v1/projects/1/wf2desx", "query"},
	{"POST", "/x/v1/projects/1/wf2des", "query"},
	{"POST", "/V1/projects/1/wf2des", "query"},
	{"POST", "/" + wf2des, "query"},
	{"POST", wf2des + "/", "query"},
	{"POST", "/v1/projects/1/../1/wf2des", "query"},
	{"POST", "/v1/projects/1/%77f2des", "query"},
	{"POST", "/v1/projects/1%2Fwf2des", "query"},
	{"POST", "/v1/projects/1%2F2/wf2des", "intake"}, // one segment, and no project
	{"POST", wf2des + "//confirm", "query"},
	{"POST", wf2des + "/" + run + "/confirm/", "query"},
	{"DELETE", wf2des + "/" + run + "/", "query"},
	{"DELETE", wf2des + "/..", "interaction"},
}

func TestPublicRoutes(t *testing.T) {
	t.Parallel()
	services := map[string]http.Handler{}
	for _, name := range []string{"intake", "query", "interaction"} {
		services[name] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Service", name)
			w.Header().Set("Target", r.RequestURI)
			w.WriteHeader(http.StatusTeapot)
		})
	}
	gateway := start(t, routesFile(t), services)
	for _, test := range publicRoutes {
		reply := raw(t, gateway, test.method+" "+test.path+"?a=/confirm HTTP/1.1\r\nHost: framerun\r\nContent-Length: 0\r\n\r\n")
		if got := reply.Header.Get("Service"); reply.StatusCode != http.StatusTeapot || got != test.service {
			t.Errorf("%s %s: %d from %q; want %s", test.method, test.path, reply.StatusCode, got, test.service)
		}
		if got := reply.Header.Get("Target"); got != test.path+"?a=/confirm" {
			t.Errorf("%s %s arrived as %s", test.method, test.path, got)
		}
	}
}

// Gateways differ in how they rank kinds of paths. The file must mean the same to all: one kind, and no request that two rules
// fit, but for the one that fits all and is the shortest.
func TestRoutesArePortable(t *testing.T) {
	t.Parallel()
	rules, err := parse(routesFile(t))
	if err != nil {
		t.Fatal(err)
	}
	last := rules[len(rules)-1]
	for _, r := range rules {
		if r.kind != gatewayv1.PathMatchRegularExpression || !strings.HasPrefix(r.path, "^/") || !strings.HasSuffix(r.path, "$") {
			t.Errorf("%s %q is no expression anchored at both ends", r.kind, r.path)
		}
		if r != last && len(r.path) <= len(last.path) {
			t.Errorf("%q is not longer than %q, which fits everything", r.path, last.path)
		}
	}
	for _, test := range publicRoutes {
		var fit []string
		for _, r := range rules {
			if r.matches(test.method, test.path) {
				fit = append(fit, r.path)
			}
		}
		if len(fit) == 0 || len(fit) > 2 || fit[len(fit)-1] != last.path {
			t.Errorf("%s %s fits %q", test.method, test.path, fit)
		}
	}
}

func routesFile(t *testing.T) []byte {
	t.Helper()
	file, err := os.ReadFile("../../base/routes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return file
}
