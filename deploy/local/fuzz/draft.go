package fuzz

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// member is one member of a JSON object, as raw text.
type member struct{ name, value string }

// draft is a request before it is written down: parts that can be changed one at a time.
type draft struct {
	route   *route
	run     *entry
	tenant  tenant
	service string
	method  string
	path    []string
	query   string
	members []member
	hasBody bool
	auth    []string // values of Authorization
	headers []Field
	rewrite []func(*generator, []byte) []byte // of the body's bytes, before they are signed
	spoil   []func(*generator, *Request)      // of the finished request
	forged  bool                              // signed with another secret
	shift   time.Duration                     // of the signature's time
	alone   []int                             // the statuses that are right if the last change is the only one
}

func (r *route) draft(g *generator, e *entry, t tenant) *draft {
	d := &draft{route: r, run: e, tenant: t, service: r.service, method: r.method, path: r.path(g, e, t), hasBody: r.members != nil}
	if r != webhook && r != preflight {
		d.auth = []string{"Bearer " + pick(g, t.tokens)}
	}
	if r.members != nil {
		r.members(g, d)
	}
	if r.headers != nil {
		d.headers = r.headers(g, e)
	}
	if r.query != nil {
		d.query = r.query(g, d)
	}
	if r != webhook && g.chance(6) {
		d.service = "gateway"
	}
	return d
}

// request writes the draft down. A worker's word is signed last, over the bytes that will be sent.
func (d *draft) request(g *generator) *Request {
	r := &Request{Service: d.service, Method: d.method, Target: "/" + strings.Join(d.path, "/"), route: d.route.name}
	if d.query != "" {
		r.Target += "?" + d.query
	}
	if d.hasBody {
		r.Body = d.body(g)
		r.add("Content-Type", "application/json")
	}
	for _, value := range d.auth {
		r.add("Authorization", value)
	}
	r.Header = append(r.Header, d.headers...)
	if d.route == webhook {
		d.sign(g, r)
	}
	for _, spoil := range d.spoil {
		spoil(g, r)
	}
	_, err := url.ParseRequestURI(r.Target)
	r.Raw = err != nil || strings.Contains(r.Target, " ") || strings.Contains(strings.Join(r.values("Expect"), ""), "200")
	return r
}

func (d *draft) body(g *generator) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range d.members {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", m.name, m.value)
	}
	b.WriteByte('}')
	body := b.Bytes()
	for _, rewrite := range d.rewrite {
		body = rewrite(g, body)
	}
	return body
}

func (d *draft) sign(g *generator, r *Request) {
	signer := g.people.worker
	if d.forged {
		signer = g.people.forger
	}
	g.serial++
	signed := signer.Sign(fmt.Sprintf("msg_%d_%d", g.number, g.serial), time.Now().Add(d.shift), r.Body)
	for _, name := range slices.Sorted(maps.Keys(signed)) {
		r.add(name, signed.Get(name))
	}
}

func (d *draft) put(name, value string) { d.members = append(d.members, member{quoted(name), value}) }
