package fuzz

import (
	"strconv"
	"strings"
	"time"
)

// change makes one part of a draft odd or wrong. Where there is a body it is the body half of the time.
func (g *generator) change(d *draft) {
	switch n := g.IntN(100); {
	case n < 55 && d.hasBody:
		g.changeBody(d)
	case n < 65:
		g.changeAuth(d)
	case n < 76:
		g.changePath(d)
	case n < 80:
		d.method = pick(g, []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW", "get", "PoSt", "M-SEARCH", "X"})
	case n < 83:
		d.service = pick(g, []string{"intake", "status", "interaction", "query", "gateway"})
	case n < 88:
		g.changeQuery(d)
	case n < 92:
		g.changeContent(d)
	default:
		g.garnish(d)
	}
}

func (g *generator) changeAuth(d *draft) {
	if d.route == webhook {
		g.changeSignature(d)
		return
	}
	if g.chance(15) { // another tenant's token, or more blanks: neither is a bad token
		d.auth = []string{pick(g, []string{"Bearer ", "Bearer   "}) + pick(g, pick(g, g.people.tenants).tokens)}
		return
	}
	bad := pick(g, g.people.bad)
	if d.auth = bad.headers; d.route != preflight {
		d.alone = []int{bad.status}
	}
	if g.chance(5) {
		d.query = "access_token=" + strings.TrimPrefix(g.people.tenants[0].tokens[0], "Bearer ")
	}
}

func (g *generator) changeSignature(d *draft) {
	switch g.IntN(8) {
	case 0:
		d.forged, d.alone = true, []int{401}
	case 1:
		d.shift = pick(g, []time.Duration{-310 * time.Second, 310 * time.Second, -290 * time.Second, 290 * time.Second, -24 * time.Hour})
	case 2:
		d.auth = []string{"Bearer " + pick(g, d.tenant.tokens)}
	default:
		name := pick(g, []string{"webhook-id", "webhook-timestamp", "webhook-signature"})
		value := pick(g, []string{"", "x", "v1,", "v1,AAAA", "v2,AAAA", "0", "-1", "1e9", "99999999999999999999", "\xff",
			strings.Repeat("v1,A ", 500)})
		how := g.IntN(3)
		d.spoil = append(d.spoil, func(_ *generator, r *Request) {
			if how > 0 {
				r.drop(name)
			}
			if how < 2 {
				r.add(name, value)
			}
		})
	}
}

func (g *generator) changeQuery(d *draft) {
	pair := pick(g, []string{"limit", "status", "a", "%00", "", "figmaFileKey", "cursor", "access_token", "%ff", "Limit",
		"limit%20"}) + pick(g, []string{"=", "", "=="}) + pick(g, queryValues)
	if g.chance(30) && d.query != "" {
		d.query = pick(g, []string{d.query + "&" + d.query, "&" + d.query + "&&", d.query + "#x", strings.ReplaceAll(d.query, "&", ";"),
			d.query[:g.IntN(len(d.query))]})
		return
	}
	d.query = strings.TrimPrefix(d.query+"&"+pair, "&")
}

func (g *generator) changeContent(d *draft) {
	fields := pick(g, contents)
	if !d.hasBody && g.chance(70) { // a body where none is needed
		d.hasBody, d.members = true, nil
		if g.chance(50) {
			d.put("reason", `"because"`)
		}
	}
	d.spoil = append(d.spoil, func(_ *generator, r *Request) {
		r.drop("Content-Type")
		r.Header = append(r.Header, fields...)
	})
}

// changePath misses the route nearly, or names a run that is not there for this caller.
func (g *generator) changePath(d *draft) {
	if len(d.path) == 0 { // an earlier change has left nothing of it
		return
	}
	last := len(d.path) - 1
	at := g.IntN(last + 1)
	switch g.IntN(9) {
	case 0:
		d.path = append(d.path, pick(g, []string{"", ".", "..", "x", "%2F", "confirm", "timeline", "%00", "\xff", "é"}))
	case 1:
		d.path = append(d.path[:at:at], append([]string{pick(g, []string{"", ".", "..", "%2e%2e", "%2F", "x"})}, d.path[at:]...)...)
	case 2:
		d.path = append(d.path[:at:at], d.path[at+1:]...)
	case 3:
		d.path[at] = pick(g, []string{strings.ToUpper(d.path[at]), d.path[at] + "%20", d.path[at] + "/", "%" + d.path[at], d.path[at] + ";x=1",
			d.path[at] + "."})
	case 4:
		if last >= 3 {
			d.path[2] = g.otherProject(d)
		}
	case 5:
		if last >= 3 {
			d.path[3] = pick(g, []string{"wf2des", "code2wf", "WF2DES", "wf2des%00", "design"})
		}
	default:
		if last >= 4 {
			d.path[4] = g.otherID(d.path[4])
		}
	}
}

// otherProject is another project, but for new runs never another organization's: with its token as well the run would be made, and
// its texts belong to the organization that they name.
func (g *generator) otherProject(d *draft) string {
	project := pick(g, projects)
	for _, t := range g.people.tenants {
		if d.route.tail == "-" && d.method != "GET" && t.organization != d.tenant.organization && project == strconv.FormatInt(t.project, 10) {
			return "4"
		}
	}
	return project
}

var projects = []string{"1", "2", "3", "4", "0", "-1", "+1", "01", "1.0", "9223372036854775807", "9223372036854775808", "1e0", "%31", "１",
	"", "null", strings.Repeat("1", 400)}

// otherID is an id that is spelled otherwise, or another id.
func (g *generator) otherID(id string) string {
	another := "01980000-0000-7000-8000-0000000000fe"
	if n := len(g.book.recent); n > 0 {
		another = g.book.recent[g.IntN(n)].id
	}
	if len(id) != len(another) { // it has been changed already
		return another
	}
	return pick(g, []string{strings.ToUpper(id), "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), id + "%00",
		id[:len(id)-1], id + "0", " " + id, "%20" + id,
		"%30" + id[1:], id[:14] + "4" + id[15:], id[:14] + "1" + id[15:], "00000000-0000-0000-0000-000000000000",
		"01980000-0000-7000-8000-0000000000ff", "..", "%2F", "*",
		strings.Repeat("a", 9000), another, another, "confirm", "é", id + "%ff", id + "/../" + id})
}
