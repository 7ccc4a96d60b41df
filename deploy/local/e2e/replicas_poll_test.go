package e2e

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// neverBackwards plays runs while plugins poll them, each showing what it has seen. What one replica has told, the other may not know
// yet: it must find out rather than show less.
func neverBackwards(t *testing.T, s *suite) {
	served := [2]float64{s.answers(t, queries[0]), s.answers(t, queries[1])}
	p := s.polls(t, 4)
	p.asked(t)
	for _, step := range []func(run){
		func(r run) { s.tell(t, r, "parsed", nil) },
		func(r run) { s.tell(t, r, "parsed", nil) }, // told twice: no version
		func(r run) { s.confirm(t, r) },
		func(r run) { s.tell(t, r, "completed", r.result()) },
		func(r run) { s.ask(t, "POST", r.self+"/placement", nil).want(t, 200) },
		func(r run) {
			s.ask(t, "POST", r.self+"/feedback", map[string]any{"feedbackStatus": "fixed"}).want(t, 200)
		},
		func(r run) {
			s.ask(t, "POST", r.self+"/feedback", map[string]any{"feedbackStatus": "adopted"}).want(t, 200)
		},
	} {
		for _, r := range p.runs {
			step(r)
		}
		p.asked(t)
	}
	for _, r := range p.runs {
		last := s.number(t, `SELECT (extract(epoch FROM updated_at) * 1000000)::bigint FROM wf2des WHERE id = $1`, r.id)
		eventually(t, 5*time.Second, "all have seen the end", func() bool { return p.know(r, int64(last)) })
	}
	p.end()
	for i, name := range queries {
		if n := s.answers(t, name) - served[i]; n < 100 {
			t.Errorf("%s has answered %.0f times only: nothing is shown", name, n)
		}
	}
}

// answers is how often a replica has been asked for a run.
func (s *suite) answers(t *testing.T, process string) float64 {
	t.Helper()
	return s.metric(t, process, "framerun_http_requests_total{")
}

// polls are plugins that ask again and again, three for each run.
type polls struct {
	runs []run
	each []*poll
	end  func()
}

// poll is one of them.
type poll struct {
	suite  *suite
	run    run
	waits  bool // until there is something new
	hoards bool // shows all tags that it has seen, not only the last
	tags   []string
	newest atomic.Int64 // version
	asked  atomic.Int64 // times
}

// polls begins to ask for n new runs.
func (s *suite) polls(t *testing.T, n int) *polls {
	t.Helper()
	var asking sync.WaitGroup
	p, stop := &polls{}, make(chan struct{})
	p.end = sync.OnceFunc(func() { close(stop); asking.Wait() })
	t.Cleanup(p.end)
	for range n {
		r := s.create(t)
		p.runs = append(p.runs, r)
		for _, one := range []*poll{{}, {hoards: true}, {waits: true}} {
			one.suite, one.run, one.tags = s, r, []string{r.etag}
			one.newest.Store(versionOf(r.etag))
			p.each = append(p.each, one)
			asking.Go(func() { one.repeat(t, stop) })
		}
	}
	return p
}

// asked waits until all that do not wait have asked either replica, more than once.
func (p *polls) asked(t *testing.T) {
	t.Helper()
	for _, one := range p.each {
		before := one.asked.Load()
		eventually(t, 10*time.Second, "the plugins ask", func() bool { return one.waits || t.Failed() || one.asked.Load() >= before+4 })
	}
}

// know reports whether all who ask for a run have seen this version of it.
func (p *polls) know(r run, version int64) bool {
	return !slices.ContainsFunc(p.each, func(one *poll) bool { return one.run == r && one.newest.Load() != version })
}

func (p *poll) repeat(t *testing.T, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(3 * time.Millisecond):
		}
		wish := []string{"If-None-Match", strings.Join(p.tags, ", ")}
		if p.waits {
			wish = append(wish, "Prefer", "wait=1")
		}
		got, err := p.suite.try("GET", p.run.self, nil, wish...)
		if err != nil {
			t.Error(err)
			return
		}
		p.note(t, got)
	}
}

// note checks that an answer tells no less than those before it.
func (p *poll) note(t *testing.T, got reply) {
	newest, tag := p.newest.Load(), got.header.Get("ETag")
	version := versionOf(tag)
	switch {
	case got.status == 304 && version != newest:
		t.Errorf("304 with version %d, and %d is known", version, newest)
	case got.status == 200 && version <= newest:
		t.Errorf("200 with version %d after %d", version, newest)
	case got.status != 200 && got.status != 304:
		t.Errorf("%d %s", got.status, got.raw)
	case got.status == 200 && !p.hoards:
		p.tags = []string{tag}
	case got.status == 200:
		p.tags = append(p.tags, tag)
	}
	p.newest.Store(max(version, newest))
	p.asked.Add(1)
}

// versionOf reads a tag's version, in microseconds; 0 where there is none.
func versionOf(tag string) int64 {
	_, version, _ := strings.Cut(strings.Trim(tag, `"`), ".")
	micros, _ := strconv.ParseInt(version, 10, 64)
	return micros
}
