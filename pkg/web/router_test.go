package web_test

import (
	"net/http"
	"strings"
	"testing"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/web"
)

// runs has the routes of a run; each answers with the ids it was asked for.
func runs() *web.Router {
	rt := web.NewRouter()
	one := func(r *http.Request) (*web.Reply, error) {
		project, err := web.ProjectID(r)
		if err != nil {
			return nil, err
		}
		id, err := web.RunID(r)
		if err != nil {
			return nil, err
		}
		return &web.Reply{Body: map[string]any{"project": project, "id": id}}, nil
	}
	rt.Handle(http.MethodGet, "/v1/projects/{projectId}/{kind:wf2des|code2wf}/{id}", one)
	rt.Handle(http.MethodDelete, "/v1/projects/{projectId}/{kind:wf2des|code2wf}/{id}", one)
	rt.Handle(http.MethodPost, "/v1/projects/{projectId}/wf2des/{id}/cancel", one)
	rt.Handle(http.MethodGet, "/v1/projects/{projectId}/wf2des", say(&web.Reply{Body: []string{}}))
	rt.Elsewhere(http.MethodPost, "/v1/projects/{projectId}/wf2des")
	return rt
}

func TestRouterAllowsWhatThePathAllows(t *testing.T) {
	s := serve(t, runs(), web.Options{})
	const one, list = "/v1/projects/1/wf2des/" + runID, "/v1/projects/1/wf2des"
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", one, 200, ""},
		{"DELETE", one, 200, ""},
		{"HEAD", one, 200, ""},
		{"OPTIONS", one, 204, "DELETE, GET, HEAD, OPTIONS"},
		{"POST", one, 405, "DELETE, GET, HEAD, OPTIONS"},
		{"PUT", one, 405, "DELETE, GET, HEAD, OPTIONS"},
		{"TRACE", one, 405, "DELETE, GET, HEAD, OPTIONS"},
		{"get", one, 405, "DELETE, GET, HEAD, OPTIONS"},
		{"GET", one + "/cancel", 405, "POST, OPTIONS"},
		{"PUT", list, 405, "GET, HEAD, POST, OPTIONS"},
		{"OPTIONS", list, 204, "GET, HEAD, POST, OPTIONS"},
		{"POST", list, 405, "GET, HEAD, POST, OPTIONS"}, // another service's, which the gateway never sends here
		{"GET", "/v1/projects/1/des2wf/" + runID, 404, ""},
		{"OPTIONS", "/nowhere", 404, ""},
		{"POST", "/nowhere", 404, ""},
	} {
		got := s.send(t, c.method, c.path, "")
		if got.StatusCode != c.status || got.Header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d, Allow %q; want %d, %q", c.method, c.path, got.StatusCode, got.Header.Get("Allow"), c.status, c.allow)
		}
		if c.status >= 400 {
			got.problem(t)
		}
	}
}

// A path either is a route to the last byte or leads nowhere: a redirect would lose the body of a POST.
func TestRouterNeverRedirectsNorGuesses(t *testing.T) {
	s := serve(t, runs(), web.Options{})
	const id = runID
	for _, path := range []string{
		"/", "//", "//v1/projects/1/wf2des", "/v1//projects/1/wf2des", "/v1/projects/1/wf2des/", "/v1/projects/1/wf2des//",
		"/v1/projects/1/../1/wf2des", "/v1/./projects/1/wf2des", "/v1/projects/1/wf2des/..", "/../v1/projects/1/wf2des",
		"/v1/projects/1%2Fwf2des", "/v1/projects/%2F../wf2des/" + id, "/%76%31/projects/1/wf2des", "/V1/projects/1/wf2des",
		"/v1/projects/1/wf2des/" + id + "/", "/v1/projects/1/wf2des/" + id + "%2Fcancel", "/v1/projects/1/wf2des/" + id + "%00",
		"/v1/projects/1/wf2des/" + id + ";x=1", "/v1/projects/1/wf2des/" + strings.ToUpper(id), "/v1/projects/1/wf2des/{" + id + "}",
		"/v1/projects/1/wf2des/urn:uuid:" + id, "/v1/projects/1/wf2des/" + strings.ReplaceAll(id, "-", ""),
		"/v1/projects/1/wf2des/01890a5d-ac96-474b-bcce-b302099a8057", "/v1/projects/1/wf2des/01890a5d-ac96-774b-cccc-b302099a8057",
		"/v1/projects/1/wf2des/00000000-0000-0000-0000-000000000000", "/v1/projects/1/wf2des/%30" + id[1:], "/v1/projects/1/wf2des/..",
		"/v1/projects/0/wf2des/" + id, "/v1/projects/-1/wf2des/" + id, "/v1/projects/+1/wf2des/" + id, "/v1/projects/01/wf2des/" + id,
		"/v1/projects/1.0/wf2des/" + id, "/v1/projects/1e0/wf2des/" + id, "/v1/projects/9223372036854775808/wf2des/" + id,
		"/v1/projects/%31/wf2des/" + id, "/v1/projects/１/wf2des/" + id, "/v1/projects/1%20/wf2des/" + id,
		"/v1/projects/1/wf2des/" + strings.Repeat("a", 100_000),
	} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			// What a client library would clean up, a stranger does not.
			got := s.raw(t, method+" "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			status, _, _ := strings.Cut(strings.TrimPrefix(got, "HTTP/1.1 "), " ")
			if status != "404" && !(status == "405" && method == "POST") { // no POST on a run's own path
				t.Errorf("%s %.80s: %.200s", method, path, got)
			}
			if !strings.Contains(got, "application/problem+json") {
				t.Errorf("%s %.80s: not a problem document: %.200s", method, path, got)
			}
		}
	}
}

func TestPathValuesInTheirOneSpellingAreTaken(t *testing.T) {
	s := serve(t, runs(), web.Options{})
	for _, project := range []string{"1", "42", "9223372036854775807"} {
		got := s.send(t, http.MethodGet, "/v1/projects/"+project+"/code2wf/"+runID, "")
		if want := `{"id":"` + runID + `","project":` + project + `}`; got.body != want {
			t.Errorf("%s: got %s, want %s", project, got.body, want)
		}
	}
}

func TestHeadIsGetWithoutItsBody(t *testing.T) {
	rt := runs()
	rt.Handle(http.MethodGet, "/refused", refuse(lifecycle.ErrNotFound))
	s := serve(t, rt, web.Options{})
	for i, path := range []string{"/v1/projects/1/wf2des/" + runID, "/refused", "/nowhere"} {
		get := s.send(t, http.MethodGet, path, "", "X-Request-Id: fixed")
		head := s.send(t, http.MethodHead, path, "", "X-Request-Id: fixed")
		if head.body != "" || head.StatusCode != get.StatusCode {
			t.Errorf("%s: HEAD %d %q, GET %d", path, head.StatusCode, head.body, get.StatusCode)
		}
		if line := s.log.line(t, 2*i+1); line["method"] != "HEAD" || line["bytes"] != 0.0 {
			t.Errorf("%s: a body was written: %v", path, line)
		}
		for _, name := range []string{"Content-Length", "Content-Type", "Cache-Control"} {
			if head.Header.Get(name) == "" || head.Header.Get(name) != get.Header.Get(name) {
				t.Errorf("%s: %s: HEAD %q, GET %q", path, name, head.Header.Get(name), get.Header.Get(name))
			}
		}
	}
}
