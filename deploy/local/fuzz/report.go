package fuzz

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// enough is how many failures end a run early: more would be of the same kind.
const enough = 20

// Failure is one thing that should not have been.
type Failure struct {
	Worker  int
	Index   int // of the request, within the worker's
	What    string
	Request string   // as it can stand in the table of regressions; empty where a comparison with PostgreSQL failed
	Recent  []string // the worker's requests before, oldest first
}

func (f Failure) String() string {
	text := fmt.Sprintf("\nworker %d, request %d: %s\n", f.Worker, f.Index, f.What)
	if f.Request != "" {
		text += "  " + f.Request + "\n"
	}
	if len(f.Recent) > 0 {
		text += "  before it:\n    " + strings.Join(f.Recent, "\n    ") + "\n"
	}
	return text
}

// Report is what came of a run.
type Report struct {
	Seed     uint64
	Requests int
	Took     time.Duration
	Failures []Failure

	out      io.Writer
	mu       sync.Mutex
	statuses map[int]int
	codes    map[string]int
	routes   map[string]int
	outcomes map[string]int // told to workers
}

func newReport(c Config) *Report {
	return &Report{Seed: c.Seed, out: c.Out, statuses: map[int]int{}, codes: map[string]int{}, routes: map[string]int{}, outcomes: map[string]int{}}
}

func (p *Report) count(r *Request, reply *Reply, v *verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Requests++
	p.routes[r.route]++
	if reply == nil {
		return
	}
	p.statuses[reply.Status]++
	switch v.shape {
	case aProblem:
		p.codes[v.said.text("code")]++
	case aWord:
		p.outcomes[v.said.text("outcome")]++
	}
}

// fail notes a failure and tells of it at once.
func (p *Report) fail(f Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Failures = append(p.Failures, f)
	fmt.Fprintf(p.out, "%s", f)
}

func (p *Report) full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.Failures) >= enough
}

// Missing are the codes of the fixed list that no answer had, although nothing kept them from occurring.
func (p *Report) Missing() []string {
	var missing []string
	for code := range codes {
		if p.codes[code] == 0 && !faulty[code] {
			missing = append(missing, code)
		}
	}
	slices.Sort(missing)
	return missing
}

// Err is nil if nothing failed, and otherwise tells every failure so that it can be repeated.
func (p *Report) Err() error {
	if len(p.Failures) == 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d failures with seed %d:\n", len(p.Failures), p.Seed)
	for _, f := range p.Failures {
		b.WriteString(f.String())
	}
	return fmt.Errorf("fuzz: %s", b.String())
}

// Write prints the figures.
func (p *Report) Write(out io.Writer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(out, "\n%d requests in %.0f s (%.0f a second), seed %d, %d failures\n", p.Requests, p.Took.Seconds(),
		float64(p.Requests)/p.Took.Seconds(), p.Seed, len(p.Failures))
	distribution(out, "by status", p.statuses, p.Requests)
	distribution(out, "by code", p.codes, p.Requests)
	distribution(out, "told to workers", p.outcomes, p.Requests)
	distribution(out, "by what was meant", p.routes, p.Requests)
}

func distribution[K cmp.Ordered](out io.Writer, title string, counts map[K]int, all int) {
	fmt.Fprintf(out, "\n%s\n", title)
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(out, "  %-24v %8d  %5.2f %%\n", key, counts[key], 100*float64(counts[key])/float64(all))
	}
}
