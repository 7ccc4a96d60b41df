package fuzz

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
)

// perComparison is how many requests a worker sends between two looks into PostgreSQL.
const perComparison = 1000

// worker sends requests one after the other, as one client would.
type worker struct {
	number  int
	db      *sql.DB
	people  *people
	book    *book
	gen     *generator
	wires   map[string]*wire
	report  *Report
	recents []string // the last requests and what became of them
}

// run sends count requests. The error is one of the test's own means; what is wrong with the suite goes into the report.
func (w *worker) run(ctx context.Context, count int) error {
	defer w.hangUp()
	for i := range count {
		if ctx.Err() != nil || w.report.full() {
			return nil
		}
		w.one(i, w.gen.next())
		if (i+1)%perComparison == 0 || i+1 == count {
			if err := w.compare(ctx, i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *worker) hangUp() {
	for _, wire := range w.wires {
		wire.close()
	}
}

// one sends a request, judges the answer and writes it into the book.
func (w *worker) one(index int, r *Request) {
	w.calm(r)
	reply, err := w.wires[r.Service].exchange(r)
	if err == nil {
		reply, err = w.catchUp(r, reply)
	}
	if err != nil {
		w.report.count(r, nil, nil)
		if r.Raw && !errors.Is(err, os.ErrDeadlineExceeded) {
			return // net/http has hung up on what it would not read, and its answer was lost on the way
		}
		w.blame(index, r, "no answer: "+err.Error())
		return
	}
	v := judge(r, reply)
	if stale := w.book.enter(r, reply, v); stale != nil {
		w.gen.again(stale)
	}
	w.gen.remember(r, v)
	w.canaries(r, reply, v)
	w.report.count(r, reply, v)
	w.recents = append(w.recents[max(0, len(w.recents)-11):], fmt.Sprintf("%d %s %.60s: %d %s", index, r.Method, r.Target, reply.Status,
		v.said.text("code")))
	if len(v.problems) > 0 {
		w.blame(index, r, strings.Join(v.problems, "; "))
	}
}

// calm keeps a request from waiting long for a change that will not come.
func (w *worker) calm(r *Request) {
	prefer := strings.Join(r.values("Prefer"), ",")
	if waits := strings.Contains(strings.ToLower(prefer), "wait"); waits && prefer != "wait=1" && len(r.values("If-None-Match")) > 0 {
		r.drop("If-None-Match")
		r.wants = nil
	}
}

// canaries looks for texts of an organization whose token the request did not carry.
func (w *worker) canaries(r *Request, reply *Reply, v *verdict) {
	auth := strings.Join(r.values("Authorization"), " ")
	for _, t := range w.people.tenants {
		mark := canary(t.organization)
		held := false
		for _, token := range t.tokens {
			held = held || strings.Contains(auth, token)
		}
		if !held && bytes.Contains(reply.Body, []byte(mark)) && !bytes.Contains(r.Body, []byte(mark)) && !strings.Contains(r.Target, mark) {
			v.say("a text of organization %d came out: %.300s", t.organization, reply.Body)
		}
	}
}

// compare looks into PostgreSQL, and begins a new period.
func (w *worker) compare(ctx context.Context, index int) error {
	differences, err := w.book.compareRecent(ctx, w.db)
	if err != nil {
		return err
	}
	for _, d := range differences {
		w.report.fail(Failure{Worker: w.number, Index: index, What: d, Recent: w.recents})
	}
	w.gen.turn()
	return nil
}

func (w *worker) blame(index int, r *Request, what string) {
	w.report.fail(Failure{Worker: w.number, Index: index, What: what, Request: w.people.names().Replace(fmt.Sprintf("%#v", r)), Recent: w.recents})
}
