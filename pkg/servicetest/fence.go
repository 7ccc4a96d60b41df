package servicetest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"uuid"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/pkg/lifecycle"
)

// methods are all that a fence is tried with.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// Endpoint is a path of a service, and what it answers to whom.
type Endpoint struct {
	Path  string                // with {project} and, if it speaks of a run, {id}
	Run   func() lifecycle.Run  // makes a fresh run of the owner's to ask for; nil if the request names none
	Asks  map[string]Permission // by method; any other method is 405, for everybody
	Allow string                // what 405 and OPTIONS name
}

// Permission is what a request holds and the status that those who may are answered with. Who is not named here has the same
// right everywhere: none.
type Permission struct {
	Body              string // {node} stands for a node that no other request names, {id} for the run
	Owner             int    // the colleague's too
	OtherProject      int    // 0 stands for 404: whatever is asked for lies in another project
	OtherOrganization int    // 0 stands for 404 as well
	Worker            int    // where this is set workers may ask, and no person
}

// Fence tries every endpoint with every method as every principal. A 404 must be, to the byte, what an unknown id or project is
// answered with, only a request of the right person may change anything, who is not known is turned away without any SQL, and nobody
// ever hears a canary of another tenant. In the other direction, the owner is shown no run of others.
func Fence(t *testing.T, w *World, c *Client, endpoints []Endpoint) {
	t.Helper()
	leavesNoneOut(t, c, endpoints)
	w.Plant(t)
	everybody := []Principal{w.Owner, w.Colleague, w.OtherProject, w.OtherOrganization, w.Intruder, w.Expired, w.Unknown, w.Nobody, w.Worker}
	for _, e := range endpoints {
		id := ""
		for _, method := range methods {
			for _, p := range everybody {
				t.Run(fmt.Sprintf("%s %s as %s", method, e.Path, p.Name), func(t *testing.T) {
					if e.Run != nil && (id == "" || changes(method) && e.want(w, method, p) < 300) { // one that is as it was made
						id = e.Run().ID
					}
					e.try(t, w, c, method, p, id)
				})
			}
			if asked, ok := e.Asks[method]; ok && e.Run != nil && asked.Worker == 0 {
				t.Run(fmt.Sprintf("%s %s of others as owner", method, e.Path), func(t *testing.T) { e.tryOthers(t, w, c, method) })
			}
		}
	}
	for _, p := range everybody {
		if p.Token != "" && strings.Contains(c.Log.String(), p.Token) {
			t.Errorf("the log holds the token of %s", p.Name)
		}
	}
}

// leavesNoneOut checks that the endpoints are all that the service answers.
func leavesNoneOut(t *testing.T, c *Client, endpoints []Endpoint) {
	t.Helper()
	for _, route := range c.routes {
		path := strings.ReplaceAll(route.Pattern, "{projectId}", "{project}")
		if !slices.ContainsFunc(endpoints, func(e Endpoint) bool { _, asked := e.Asks[route.Method]; return asked && e.Path == path }) {
			t.Errorf("%s %s is not among the endpoints that are tried", route.Method, route.Pattern)
		}
	}
}

// tryOthers asks as the owner, who may ask, for runs that belong to another project or organization.
func (e Endpoint) tryOthers(t *testing.T, w *World, c *Client, method string) {
	t.Helper()
	for _, p := range []Principal{w.OtherProject, w.OtherOrganization} {
		run := e.Run()
		_, err := w.SQL.ExecContext(t.Context(), fmt.Sprintf(`UPDATE %s SET project_id = $1, organization_id =
			(SELECT organization_id FROM project WHERE id = $1) WHERE id = $2`, run.Kind), p.ProjectID, run.ID)
		if err != nil {
			t.Fatal(err)
		}
		got := w.unchanged(t, func() Reply {
			return c.Send(t, method, e.path(w.Owner.ProjectID, run.ID), w.Owner, e.body(w, method, run.ID))
		})
		if got.Status != http.StatusNotFound {
			t.Errorf("a run of %s is answered with %d %s", p.Name, got.Status, got.Body)
		}
	}
}

func (e Endpoint) try(t *testing.T, w *World, c *Client, method string, p Principal, id string) {
	t.Helper()
	body, want := e.body(w, method, id), e.want(w, method, p)
	ask := func() Reply { return c.Send(t, method, e.path(p.ProjectID, id), p, body) }
	var got Reply
	switch want {
	case http.StatusUnauthorized, http.StatusMethodNotAllowed, http.StatusNoContent:
		got = w.unasked(t, ask)
	case http.StatusOK, http.StatusCreated:
		got = ask()
	default:
		got = w.unchanged(t, ask)
	}
	if got.Status != want {
		t.Fatalf("got %d %s; want %d", got.Status, got.Body, want)
	}
	if allow := got.Header.Get("Allow"); (want == 405 || method == "OPTIONS") && allow != e.Allow {
		t.Errorf("Allow is %q; want %q", allow, e.Allow)
	}
	if want == 404 {
		unknown := c.Send(t, method, e.path(p.ProjectID, uuid.NewV7().String()), p, body)
		if e.Run == nil {
			unknown = c.Send(t, method, e.path(999_999, ""), p, body)
		}
		if diff := cmp.Diff(anonymous(unknown), anonymous(got)); diff != "" {
			t.Errorf("what is another's is told apart from what is not there: %s", diff)
		}
	}
	if (want == 401) != (got.Header.Get("WWW-Authenticate") == "Bearer") {
		t.Errorf("%d with WWW-Authenticate %q", want, got.Header.Get("WWW-Authenticate"))
	}
	w.Silent(t, got, w.sees(p))
}

// unasked checks that a request costs no SQL.
func (w *World) unasked(t *testing.T, ask func() Reply) Reply {
	t.Helper()
	before := w.Asked()
	got := ask()
	if bytes := w.Asked() - before; bytes != 0 {
		t.Errorf("%d bytes were sent to PostgreSQL for a %d", bytes, got.Status)
	}
	return got
}

// unchanged checks that a request changes nothing.
func (w *World) unchanged(t *testing.T, ask func() Reply) Reply {
	t.Helper()
	before := w.Content(t)
	got := ask()
	if after := w.Content(t); !maps.Equal(before, after) {
		t.Errorf("a refused request, %d, changed something: %s", got.Status, cmp.Diff(before, after))
	}
	return got
}

func changes(method string) bool { return method == http.MethodPost || method == http.MethodDelete }

func (e Endpoint) path(project int64, id string) string {
	return strings.NewReplacer("{project}", fmt.Sprint(project), "{id}", id).Replace(e.Path)
}

func (e Endpoint) body(w *World, method, id string) string {
	return strings.NewReplacer("{node}", w.Draft(lifecycle.WF2Des).WFNodeID, "{id}", id).Replace(e.Asks[method].Body)
}

// want is the status of a cell.
func (e Endpoint) want(w *World, method string, p Principal) int {
	asked, exists := e.Asks[method]
	switch {
	case !exists && method == http.MethodOptions:
		return http.StatusNoContent
	case !exists:
		return http.StatusMethodNotAllowed
	case asked.Worker != 0 && p == w.Worker:
		return asked.Worker
	case asked.Worker != 0:
		return http.StatusUnauthorized
	}
	switch p {
	case w.Owner, w.Colleague:
		return asked.Owner
	case w.OtherProject:
		return orNotFound(asked.OtherProject)
	case w.OtherOrganization:
		return orNotFound(asked.OtherOrganization)
	case w.Intruder:
		return http.StatusNotFound
	case w.Unknown:
		return http.StatusForbidden
	}
	return http.StatusUnauthorized
}

func orNotFound(status int) int {
	if status == 0 {
		return http.StatusNotFound
	}
	return status
}

// sees is the project whose runs the principal may be told of, 0 if there is none.
func (w *World) sees(p Principal) int64 {
	if slices.Contains([]Principal{w.Owner, w.Colleague, w.OtherProject, w.OtherOrganization}, p) {
		return p.ProjectID
	}
	return 0
}

// anonymous is a reply without what is different in each.
func anonymous(r Reply) Reply {
	id := r.Header.Get("X-Request-Id")
	r.Body = strings.ReplaceAll(r.Body, id, "")
	r.Header = r.Header.Clone()
	r.Header.Del("X-Request-Id")
	r.Header.Del("Date")
	return r
}
