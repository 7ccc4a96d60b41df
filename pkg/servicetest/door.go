package servicetest

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"uuid"
)

// FrontDoor holds a service against what strangers, broken plugins and hostile workers send, at each of its endpoints: nobody comes
// in with a forged token, no strange path or body is guessed at, browsers may ask from anywhere, and HEAD is GET without its body.
// Permission's are the requests that are good.
func FrontDoor(t *testing.T, w *World, c *Client, endpoints []Endpoint) {
	t.Helper()
	leavesNoneOut(t, c, endpoints)
	for _, e := range endpoints {
		for _, method := range slices.Sorted(maps.Keys(e.Asks)) {
			d := door{World: w, Client: c, Endpoint: e, method: method, caller: w.Owner}
			if e.Asks[method].Worker != 0 {
				d.caller = w.Worker
			}
			d.id = uuid.NewV7().String()
			if e.Run != nil {
				d.id = e.Run().ID
			}
			d.try(t)
		}
	}
}

// door is one method of one endpoint.
type door struct {
	*World
	*Client
	Endpoint
	method, id string
	caller     Principal // who may ask
}

func (d door) try(t *testing.T) {
	t.Helper()
	for name, hold := range map[string]func(*testing.T){
		"strangers": d.strangers, "ids": d.ids, "spellings": d.spellings, "bodies": d.bodies, "preflight": d.preflight, "head": d.head,
	} {
		t.Run(fmt.Sprint(d.method, " ", d.Path, " ", name), hold)
	}
}

// ask sends a request as somebody who may.
func (d door) ask(t *testing.T, path, body string, headers ...string) Reply {
	t.Helper()
	return d.Send(t, d.method, path, d.caller, body, headers...)
}

// good is a path that the caller may ask for.
func (d door) good() string { return d.Endpoint.path(d.Owner.ProjectID, d.id) }

// refused checks the problem, of which HEAD shows but the status.
func (d door) refused(t *testing.T, reply Reply, status int, code string) {
	t.Helper()
	if d.method != http.MethodHead {
		reply.Refused(t, status, code)
	} else if reply.Status != status || reply.Body != "" || reply.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %d %v %q; want %d", reply.Status, reply.Header, reply.Body, status)
	}
}

// strangers come with each forgery of a good token, with the signature of a worker where a person should be and the other way round.
// All are turned away before PostgreSQL is asked anything, and what they sent is not in the log.
func (d door) strangers(t *testing.T) {
	forgeries, err := sharedForgeries()
	if err != nil || len(forgeries) < 60 {
		t.Fatalf("%d forgeries, %v", len(forgeries), err)
	}
	body := d.Endpoint.body(d.World, d.method, d.id)
	turnedAway := func(name string, r *http.Request) {
		reply := d.unasked(t, func() Reply {
			reply, err := d.Try(r)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return reply
		})
		d.manners(t, name, reply)
		d.refused(t, reply, http.StatusUnauthorized, "unauthenticated")
		if reply.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: WWW-Authenticate is %q", name, reply.Header.Get("WWW-Authenticate"))
		}
	}
	for _, f := range forgeries {
		if !f.Sendable() {
			continue
		}
		r := d.Request(t, d.method, d.good(), Principal{}, body)
		r.Header["Authorization"], r.URL.RawQuery = f.Authorization, f.Query
		turnedAway(f.Name, r)
	}
	for _, p := range []Principal{d.Nobody, d.Expired, d.Worker, {Secret: freshSecret()}, d.Owner} {
		if p == d.caller || p.Token == d.caller.Token && p.Token != "" {
			continue
		}
		turnedAway(p.Name, d.Request(t, d.method, d.good(), p, body))
	}
	log := d.Log.String()
	for _, f := range forgeries {
		for _, value := range f.Authorization {
			if _, token, _ := strings.Cut(value, " "); len(token) > 16 && strings.Contains(log, token) {
				t.Errorf("%s: the token is in the log", f.Name)
			}
		}
	}
	if strings.Contains(log, "access_token") || strings.Contains(log, "v1,") {
		t.Error("a query string or a signature is in the log")
	}
}

// strangeIDs are no run's: not UUIDs, not of version 7, or not in their one spelling.
func strangeIDs(id string) []string {
	return []string{
		strings.ToUpper(id), "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), id + "%00", "%00", id + "%2F", "%2F" + id, "..%2F" + id,
		"..", ".", "%2e%2e", id + "%20", "%20" + id, id + "%0a", id + ";x=1", "%30" + id[1:], id[:35], id + "0", "0", "-1", "null", "'%20OR%201=1--", "*", "%",
		"%zz", "%ff", "%c0%ae%c0%ae", "００" + id[2:], "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
		id[:14] + "1" + id[15:], id[:14] + "4" + id[15:], id[:14] + "6" + id[15:], id[:14] + "8" + id[15:], id[:19] + "0" + id[20:], id[:19] + "f" + id[20:],
		strings.Repeat("a", 100_000), strings.Repeat(id, 1000),
	}
}

// strangeProjects are no project's number.
var strangeProjects = []string{
	"0", "-1", "+1", "01", "1.0", "1e0", "0x1", "1_0", "%31", "1%20", "%201", "1%00", "1%2F2", "1;2", "１", "one", "null", "NaN", "9223372036854775808",
	"-9223372036854775808", "99999999999999999999999999", "1'", "..", "%2e%2e", "*", "%zz", "1,2", strings.Repeat("1", 100_000),
}

// ids checks that a path with an id in another spelling names nothing, and that no such id reaches PostgreSQL.
func (d door) ids(t *testing.T) {
	var paths []string
	if strings.Contains(d.Path, "{project}") {
		for _, project := range strangeProjects {
			paths = append(paths, strings.NewReplacer("{project}", project, "{id}", d.id).Replace(d.Path))
		}
	}
	if strings.Contains(d.Path, "{id}") {
		for _, id := range strangeIDs(d.id) {
			paths = append(paths, strings.NewReplacer("{project}", fmt.Sprint(d.Owner.ProjectID), "{id}", id).Replace(d.Path))
		}
	}
	d.leadNowhere(t, paths)
}

// spellings checks that a path is taken to the letter or not at all, and that there is never a redirect: it would lose the body.
func (d door) spellings(t *testing.T) {
	path := d.good()
	d.leadNowhere(t, []string{
		"/" + path, path + "/", path + "//", path + "/.", path + "/./", "/." + path, "/x/.." + path, "/%2e" + path, "/..%2f" + path, strings.Replace(path, "/v1/", "/v1//", 1),
		strings.Replace(path, "/v1/", "/V1/", 1), strings.Replace(path, "/v1/", "/%76%31/", 1), strings.Replace(path, "/v1/", "/v1%2F", 1),
		strings.Replace(path, "/v1/", "/v1/./", 1), strings.Replace(path, "/v1/", "/v2/../v1/", 1), strings.Replace(path, "/v1/", `/v1\`, 1),
		strings.Replace(path, "/v1/", "/v1;a=b/", 1), path + "%2F", path + "%00", path + "%20", path + ".json", path + ";x=1", path + "%3Fx", path + "%23", strings.ToUpper(path),
	})
}

// leadNowhere sends the request to each path, as it stands and not as a client would mend it. What is no URL at all, net/http itself
// answers with a bare 400.
func (d door) leadNowhere(t *testing.T, paths []string) {
	t.Helper()
	d.ask(t, d.Endpoint.path(d.Owner.ProjectID, uuid.NewV7().String()), "x", "Content-Type", "text/plain") // the caller is remembered
	body := d.Endpoint.body(d.World, d.method, d.id)
	for _, path := range paths {
		r := d.Request(t, d.method, "/", d.caller, body)
		if r.URL.Opaque = path; strings.HasPrefix(path, "//") { // which would be taken for a host
			r.URL.Opaque = "//" + r.URL.Host + path
		}
		reply := d.unasked(t, func() Reply {
			reply, err := d.Try(r)
			if err != nil {
				t.Fatalf("%.80s: %v", path, err)
			}
			return reply
		})
		if _, err := url.ParseRequestURI(path); err != nil && reply.Status == http.StatusBadRequest {
			continue
		}
		d.manners(t, path, reply)
		d.refused(t, reply, http.StatusNotFound, "not_found")
	}
}
