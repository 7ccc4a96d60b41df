package fuzz

import (
	"fmt"
	"math/rand/v2"
)

// generator makes one worker's requests. All that it does follows from the seed, the worker's number and the answers so far.
type generator struct {
	*rand.Rand
	number int
	people *people
	book   *book
	period int // counts the comparisons; every file key belongs to one
	serial int // makes names that stand for themselves
	keys   int // counts Idempotency-Keys
	plan   []*Request
	keyed  *Request // the last new run that was asked for with an Idempotency-Key
	cursor cursor
}

// cursor is the last one that a list gave out, and where.
type cursor struct{ path, query, value string }

func newGenerator(seed uint64, number int, p *people, b *book) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, uint64(number))), number: number, people: p, book: b}
	g.turn()
	if number == 0 {
		g.repeat()
	}
	return g
}

// chance is true in so many of a hundred cases.
func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, from []T) T { return from[g.IntN(len(from))] }

// turn begins a period: new file keys, so that each comparison knows all rows that may be under its own.
func (g *generator) turn() {
	g.period++
	for _, t := range g.people.tenants {
		g.book.files[g.fileKey(t)] = nil
	}
}

// fileKey is this worker's file in a tenant. It is a canary too: it names the organization that alone may see it. It says everything
// twice, so that no flipped bit makes another worker's key of it.
func (g *generator) fileKey(t tenant) string {
	own := fmt.Sprintf("-%dw%dp%d", t.project, g.number, g.period)
	return canary(t.organization) + own + own
}

// canary begins whatever is written for an organization.
func canary(organization int64) string { return fmt.Sprintf("fuzz-o%d", organization) }

// oddFileKey is one that nobody else sends, with something odd in it.
func (g *generator) oddFileKey(t tenant, inside string) string {
	g.serial++
	key := fmt.Sprintf("%sn%d", g.fileKey(t), g.serial)
	return key + inside
}

// next is the request to send now.
func (g *generator) next() *Request {
	if len(g.plan) > 0 {
		r := g.plan[0]
		g.plan = g.plan[1:]
		g.resolve(r)
		return r
	}
	if g.IntN(4000) == 0 {
		g.flood()
	}
	c := g.choose()
	d := c.route.draft(g, c.run, c.tenant)
	wants := g.expected(c)
	changes := []int{0, 0, 0, 0, 0, 1, 1, 1, 2, 3}[g.IntN(10)]
	for range changes {
		g.change(d)
	}
	switch {
	case changes == 1 && c.exists():
		wants = d.alone
	case changes > 0:
		wants = nil
	}
	r := d.request(g)
	r.wants = wants
	g.sometimes(r)
	g.twice(r)
	return r
}

// twice asks for some new runs again, to the letter, now or later.
func (g *generator) twice(r *Request) {
	if g.keyed != nil && g.chance(1) {
		again := *g.keyed
		again.wants = nil
		g.plan = append(g.plan, &again)
	}
	if len(r.values("Idempotency-Key")) > 0 && r.Method == "POST" {
		g.keyed = r
	}
}

// flood asks for new runs faster than anybody may.
func (g *generator) flood() {
	t := g.people.tenants[0]
	for range 60 {
		d := createDesign.draft(g, nil, t)
		d.members = nil
		r := d.request(g)
		r.wants = []int{422, 429}
		g.plan = append(g.plan, r)
	}
}

// again asks for a run's new version.
func (g *generator) again(e *entry) {
	d := getRun.draft(g, e, e.tenant)
	d.headers = nil
	r := d.request(g)
	r.Service = "query"
	if r.wants = []int{200}; e.deleted {
		r.wants = []int{404}
	}
	g.plan = append(g.plan, r)
}
