package e2e

import (
	"bufio"
	"context"
	"encoding/json/v2"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"framerun.dev/pkg/web"
	"github.com/google/go-cmp/cmp"
)

const listened, stepsOfEach = 10, 4 // runs, and steps of each that are told while people listen

// hopping plays runs while people listen whose connections break at any line, and who come back to whichever replica it is. Over all
// connections each is told every step once, as the timeline has it, and at last the run as it is.
func hopping(t *testing.T, s *suite) {
	var listeners []*listener
	steps, listening := &atomic.Int64{}, &sync.WaitGroup{}
	t.Cleanup(listening.Wait)
	for i := range listened {
		r := s.create(t)
		for _, l := range []*listener{{}, {told: told{id: "0"}, whole: true}} {
			l.suite, l.run, l.steps, l.luck = s, r, steps, rand.New(rand.NewPCG(uint64(i), uint64(len(listeners))))
			listeners = append(listeners, l)
			listening.Go(func() { l.listen(t) })
		}
	}
	for _, step := range []func(run){
		func(r run) { s.tell(t, r, "parsed", nil) },
		func(r run) { s.tell(t, r, "parsed", nil) }, // too late: in the timeline, and no step
		func(r run) { s.confirm(t, r) },
		func(r run) { s.tell(t, r, "completed", r.result()) },
	} {
		for i := range listened {
			step(listeners[2*i].run)
			steps.Add(1)
		}
	}
	listening.Wait()
	hops, torn := 0, 0
	for _, l := range listeners {
		l.check(t)
		hops, torn = hops+l.hops, torn+l.torn
	}
	if hops < 2*len(listeners) || torn == 0 {
		t.Errorf("%d connections, %d cut between a step and its run: nothing is shown", hops, torn)
	}
}

// listener is an EventSource with bad luck: it dispatches whole events only, and comes back with the id of the last one.
type listener struct {
	suite *suite
	run   run
	steps *atomic.Int64 // that were taken, of all runs
	luck  *rand.Rand

	told
	whole bool  // begins with the run's first step, not with the run as it is
	from  int   // the last step that it does not want to be told
	lines []any // the data of all steps
	last  told  // run
	hops  int
	torn  int // connections that were cut between a step and its run
}

// told is one event.
type told struct{ event, id, data string }

// listen connects until the stream has no more to tell. Now and then it stays away for some steps.
func (l *listener) listen(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	for more := true; more && !t.Failed(); l.hops++ {
		for until := min(l.steps.Load()+l.luck.Int64N(20), listened*stepsOfEach); l.steps.Load() < until && ctx.Err() == nil; {
			<-time.After(time.Millisecond)
		}
		var err error
		if more, err = l.connect(ctx); err != nil {
			t.Errorf("run %s, connection %d: %v", l.run.id, l.hops, err)
			return
		}
	}
}

// connect listens over one connection, until it ends or is cut; false when nothing will follow.
func (l *listener) connect(ctx context.Context) (more bool, err error) {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	req, err := l.suite.request("GET", l.run.self, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if l.id != "" {
		req.Header.Set("Last-Event-ID", l.id)
	}
	res, err := http.DefaultClient.Do(req.WithContext(ctx))
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return false, l.over(res.StatusCode)
	}
	e, lines := told{}, bufio.NewScanner(res.Body)
	for lines.Scan() && l.luck.IntN(6) > 0 {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name == "event":
			e.event = value
		case name == "id":
			e.id = value
		case name == "data":
			e.data = value
		case name == "" && e.data != "":
			if err := l.hear(e); err != nil {
				return false, err
			}
			e = told{}
		}
	}
	if l.event == "step" {
		l.torn++
	}
	return true, lines.Err()
}

// over takes the one answer that is no stream.
func (l *listener) over(status int) error {
	if status != http.StatusNoContent {
		return fmt.Errorf("the stream is refused with %d", status)
	}
	return nil
}

// hear takes an event in.
func (l *listener) hear(e told) error {
	l.told = e
	switch e.event {
	case "step":
		l.lines = append(l.lines, nil)
		return json.Unmarshal([]byte(e.data), &l.lines[len(l.lines)-1])
	case "run":
		if !l.whole && l.last.id == "" {
			l.from = number(e.id)
		}
		if number(e.id) < number(l.last.id) {
			return fmt.Errorf("step %s led to the run after %s had", e.id, l.last.id)
		}
		l.last = e
		return nil
	}
	return fmt.Errorf("nobody has told %+v", e)
}

// number reads a run event's id; 0 where there is none.
func number(id string) int {
	n, _ := strconv.Atoi(id)
	return n
}

// check compares what the listener was told with what has happened.
func (l *listener) check(t *testing.T) {
	t.Helper()
	var want []any
	for _, item := range l.suite.ask(t, "GET", l.run.self+"/timeline", nil).want(t, 200).body["items"].([]any) {
		line := item.(map[string]any)
		if line["outcome"] == "applied" && line["seq"].(float64) > float64(l.from) {
			want = append(want, item)
		}
	}
	if diff := cmp.Diff(want, l.lines); diff != "" {
		t.Errorf("over %d connections not each step was told once (-timeline +told):\n%s", l.hops, diff)
	}
	unseen := web.ETag(l.run.id, never) // makes a replica that knows less find out
	if now := l.suite.ask(t, "GET", l.run.self, nil, "If-None-Match", unseen).want(t, 200); l.last.data != now.raw {
		t.Errorf("the last word was %s\nand the run is %s", l.last.data, now.raw)
	}
}
