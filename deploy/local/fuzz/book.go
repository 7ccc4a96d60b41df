package fuzz

import (
	"fmt"
	"time"
)

// book is what one worker knows of its runs, from the answers alone. Nobody else touches them, so all of it must stand in
// PostgreSQL, and nothing else.
type book struct {
	people  *people
	runs    map[string]*entry
	recent  []*entry            // those that requests are about, newest last
	touched map[string]bool     // ids that were spoken of since the last comparison
	files   map[string][]*entry // by file key, since the last comparison
	keys    map[string]*entry   // by organization and Idempotency-Key
}

// entry is one run as the answers tell of it.
type entry struct {
	id, kind string
	tenant   tenant
	fileKey  string
	node     string
	edge     string
	screen   string
	status   string
	phase    string
	auto     bool
	placed   bool
	feedback string
	deleted  bool
	changed  time.Time // updatedAt
	by       string    // who made the last step
	stale    bool      // a worker's step was applied, whose time the worker was not told
	lines    int       // of the timeline
	applied  int       // of those, the steps
	jobs     int       // what workers were asked for
}

// String leaves out the tokens.
func (e *entry) String() string {
	if e == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s %s of project %d: %s %s, changed %v by %s, %d lines, %d steps, %d jobs, placed %t, feedback %q, deleted %t, stale %t",
		e.kind, e.id, e.tenant.project, e.status, e.phase, e.changed, e.by, e.lines, e.applied, e.jobs, e.placed, e.feedback, e.deleted, e.stale)
}

func (e *entry) open() bool { return e.status == "processing" }
func (e *entry) path() string {
	return fmt.Sprintf("/v1/projects/%d/%s/%s", e.tenant.project, e.kind, e.id)
}

// etag is the run's version as it was last told.
func (e *entry) etag() string { return fmt.Sprintf("%q", version(e.id, e.changed)) }

// kept is how many runs a worker goes on with.
const kept = 40

func newBook(p *people) *book {
	return &book{people: p, runs: map[string]*entry{}, touched: map[string]bool{}, files: map[string][]*entry{}, keys: map[string]*entry{}}
}

func (b *book) add(e *entry) {
	b.runs[e.id] = e
	if b.recent = append(b.recent, e); len(b.recent) > kept {
		b.recent = b.recent[1:]
	}
	b.files[e.fileKey] = append(b.files[e.fileKey], e)
	b.touched[e.id] = true
}

// touch remembers to compare the run that a request spoke of, whatever the answer was.
func (b *book) touch(id string) *entry {
	e := b.runs[id]
	if e != nil {
		b.touched[id] = true
	}
	return e
}

// step notes that a change was told.
func (e *entry) step(by string) {
	e.lines++
	e.applied++
	e.by = by
}
