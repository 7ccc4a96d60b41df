package fuzz

import (
	"encoding/base64"
	"fmt"
	"slices"
	"testing"
	"time"

	"framerun.dev/pkg/auth"
)

// cast are people whose tokens nobody would take.
func cast(t *testing.T) *people {
	t.Helper()
	hooks, err := auth.NewWebhooks([]string{"whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32))}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return &people{subject: "s", worker: hooks, forger: hooks, bad: []badAuth{{nil, 401}}, tenants: []tenant{
		{1, 1, []string{"plugin", "api"}, "p"}, {1, 2, []string{"plugin", "api"}, "p"}, {2, 3, []string{"foreign"}, "p"}}}
}

// lives is a book that knows a run in each state of both kinds.
func lives(p *people) *book {
	b := newBook(p)
	for i, e := range []entry{{kind: "wf2des", status: "processing", phase: "parse"}, {kind: "wf2des", status: "processing", phase: "awaiting_confirm"},
		{kind: "wf2des", status: "processing", phase: "assemble", auto: true}, {kind: "wf2des", status: "completed"}, {kind: "wf2des", status: "cancelled"},
		{kind: "code2wf", status: "processing"}, {kind: "code2wf", status: "failed", deleted: true}} {
		e.id, e.tenant = fmt.Sprintf("01980000-0000-7000-8000-00000000000%d", i), p.tenants[i%3]
		b.add(&e)
	}
	return b
}

// A seed that failed must make the same requests again.
func TestOneSeedMakesTheSameRequests(t *testing.T) {
	t.Parallel()
	p := cast(t)
	make := func(seed uint64) (requests []string) {
		g := newGenerator(seed, 3, p, lives(p))
		for range 5000 {
			r := g.next()
			for _, name := range []string{"webhook-timestamp", "webhook-signature"} { // they tell the time
				r.drop(name)
			}
			requests = append(requests, fmt.Sprintf("%#v", r))
		}
		return requests
	}
	one := make(5)
	if !slices.Equal(one, make(5)) {
		t.Error("the same seed made other requests")
	}
	if slices.Equal(one, make(6)) {
		t.Error("another seed made the same requests")
	}
}

// Whatever is drawn, the generator must not stumble over it itself.
func TestGeneratorGoesOn(t *testing.T) {
	t.Parallel()
	p := cast(t)
	for number := range 4 {
		g := newGenerator(11, number, p, lives(p))
		g.cursor = cursor{"/v1/projects/1/wf2des", "limit=1", base64.RawURLEncoding.EncodeToString(make([]byte, 32))}
		for range 50_000 {
			if r := g.next(); r.Service == "" || r.Method == "" || r.Target == "" {
				t.Fatalf("no request: %#v", r)
			}
		}
	}
}
