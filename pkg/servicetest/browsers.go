package servicetest

import (
	"net/http"
	"strings"
	"testing"
	"uuid"

	"github.com/google/go-cmp/cmp"
)

// preflight checks that a browser whose page has the origin null may ask, without a token and without any SQL. A service that no
// browser may call says nothing of origins at all, which Send sees to.
func (d door) preflight(t *testing.T) {
	reply := d.unasked(t, func() Reply {
		return d.Send(t, http.MethodOptions, d.good(), d.Nobody, "", "Origin", "null", "Access-Control-Request-Method", d.method,
			"Access-Control-Request-Headers", "authorization,content-type")
	})
	if reply.Status != http.StatusNoContent || reply.Body != "" {
		t.Errorf("a preflight is answered with %d %s", reply.Status, reply.Body)
	}
	methods, headers := reply.Header.Get("Access-Control-Allow-Methods"), strings.ToLower(reply.Header.Get("Access-Control-Allow-Headers"))
	if d.cors != (strings.Contains(methods, d.method) && strings.Contains(headers, "authorization")) {
		t.Errorf("a preflight allows the methods %q and the headers %q", methods, headers)
	}
}

// head checks that HEAD shows what GET would, good or bad, without its body.
func (d door) head(t *testing.T) {
	if d.method != http.MethodHead {
		return
	}
	path := d.good()
	for name, asked := range map[string]struct {
		path    string
		as      Principal
		headers []string
	}{
		"a good one":          {path, d.caller, nil},
		"nothing new":         {path, d.caller, []string{"If-None-Match", "*"}},
		"a strange parameter": {path + "?x=1", d.caller, nil},
		"another's":           {path, d.Intruder, nil},
		"an unknown one":      {d.Endpoint.path(999_999, uuid.NewV7().String()), d.caller, nil},
		"a stranger":          {path, d.Nobody, nil},
		"an unknown user":     {path, d.Unknown, nil},
		"no route":            {path + "/", d.caller, nil},
	} {
		get := anonymous(d.Send(t, http.MethodGet, asked.path, asked.as, "", asked.headers...))
		head := anonymous(d.Send(t, http.MethodHead, asked.path, asked.as, "", asked.headers...))
		if head.Body != "" {
			t.Errorf("%s: HEAD has the body %q", name, head.Body)
		}
		if get.Body = ""; !cmp.Equal(get, head) {
			t.Errorf("%s (-GET +HEAD):\n%s", name, cmp.Diff(get, head))
		}
	}
}
