package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"uuid"

	"github.com/jmoiron/sqlx"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/web"
)

// asking is a call of show that is still being answered.
type asking struct {
	done chan struct{}
	view *view
	err  error
}

func (q *query) show(run lifecycle.Run, seen time.Time) *asking {
	a := &asking{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.view, a.err = q.hot.show(context.Background(), run.Ref, run.Tenant, seen)
	}()
	return a
}

// version waits for the answer.
func (a *asking) version(t *testing.T) time.Time {
	t.Helper()
	select {
	case <-a.done:
	case <-time.After(20 * time.Second):
		t.Fatal("there is no answer")
	}
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a.view.run.UpdatedAt
}

// held keeps everybody from reading the runs of a kind until it commits.
func (q *query) held(t *testing.T, kind lifecycle.Kind) *sqlx.Tx {
	t.Helper()
	tx := q.SQL.MustBegin()
	t.Cleanup(func() { _ = tx.Rollback() })
	tx.MustExec(`LOCK TABLE ` + string(kind) + ` IN ACCESS EXCLUSIVE MODE`)
	return tx
}

// blocked is how many statements wait for a lock.
func (q *query) blocked(t *testing.T) (n int) {
	t.Helper()
	if err := q.SQL.Get(&n, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`); err != nil {
		t.Fatal(err)
	}
	return n
}

// move changes a run inside tx and gives its next version.
func move(tx *sqlx.Tx, run lifecycle.Run) (next time.Time) {
	next = run.UpdatedAt.Add(time.Second)
	tx.MustExec(`UPDATE `+string(run.Kind)+` SET updated_at = $2 WHERE id = $1`, run.ID, next)
	return next
}

// What is hot is shown without a word to PostgreSQL, ended or not. Catches a poll that reads.
func TestAPollAsksPostgreSQLNothing(t *testing.T) {
	t.Parallel()
	q := still(t)
	for _, state := range []lifecycle.State{lifecycle.Parsing, lifecycle.Completed} {
		run := q.In(t, lifecycle.WF2Des, state)
		tag := q.get(t, path(run)).Header.Get("Etag")
		before := q.Asked()
		for range 20 {
			q.get(t, path(run))
			if reply := q.Send(t, "GET", path(run), q.Owner, "", "If-None-Match", tag); reply.Status != 304 {
				t.Fatalf("got %d %s", reply.Status, reply.Body)
			}
		}
		if asked := q.Asked() - before; asked > 0 {
			t.Errorf("%d bytes were sent to PostgreSQL about a run that is %s", asked, state)
		}
	}
}

// Without a hint and without the looks a run is read again after a look. Catches a run that is believed for ever.
func TestSilenceIsNotBelievedForLong(t *testing.T) {
	t.Parallel()
	q := still(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	q.get(t, path(run))
	next := q.Step(t, run, lifecycle.Parsed).Run
	start := time.Now()
	servicetest.Eventually(t, "the change is seen", func() bool {
		return q.get(t, path(run)).Header.Get("Etag") == web.ETag(next.ID, next.UpdatedAt)
	})
	if took := time.Since(start); took > 3*look {
		t.Errorf("the change was seen after %s", took)
	}
}

// The looks keep a run hot that is polled, and one query does it for all.
func TestLooksKeepRunsHot(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	v := q.show(run, time.Time{})
	v.version(t)
	for start := time.Now(); time.Since(start) < 3*look; <-time.After(look / 20) {
		if got := q.show(run, time.Time{}); got.version(t) != run.UpdatedAt || got.view != v.view {
			t.Fatal("an unchanged run was read again")
		}
	}
}

// A run that is asked for once costs no looks; from the second time on it does, also when some seconds lie between. Catches looks at all that
// was ever read, and polls that are never known as such.
func TestOnlyPollsAreLookedAt(t *testing.T) {
	t.Parallel()
	q := still(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	q.show(run, time.Time{}).version(t)
	if all := q.hot.sweep(); len(all) != 0 {
		t.Errorf("after one read %v is looked at", all)
	}
	e := q.hot.entryOf(run)
	q.hot.mu.Lock()
	e.used, e.checked = e.used.Add(-2*look), e.checked.Add(-2*look) // time passes
	q.hot.mu.Unlock()
	q.hot.sweep()
	q.show(run, time.Time{}).version(t)
	if all := q.hot.sweep(); len(all[run.Kind]) != 1 {
		t.Errorf("a polled run is not looked at: %v", all)
	}
}

// However many ask at once, one of them reads.
func TestManyReadersAreOneRead(t *testing.T) {
	t.Parallel()
	q := still(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	q.show(run, time.Time{}).version(t) // statements are prepared now
	q.hot.hint(run.Ref)
	tx := q.held(t, run.Kind)
	var all []*asking
	for range 50 {
		all = append(all, q.show(run, time.Time{}))
	}
	servicetest.Eventually(t, "somebody reads", func() bool { return q.blocked(t) > 0 })
	next := move(tx, run)
	if n := q.blocked(t); n != 1 {
		t.Errorf("%d read at once; want 1", n)
	}
	tx.Commit()
	for _, a := range all {
		if got := a.version(t); got != next && got != run.UpdatedAt {
			t.Errorf("got the version %s", got)
		}
	}
}

// Who asks after a hint is not shown what a read brings that began before it. Catches readers who join any read.
func TestAReadThatAHintHasOvertakenIsNotShared(t *testing.T) {
	t.Parallel()
	q := still(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	e := q.hot.entryOf(run)
	old := &reading{began: time.Now(), done: make(chan struct{})}
	q.hot.mu.Lock()
	e.reading = old // somebody reads, and will see the run as it is now
	q.hot.mu.Unlock()
	before := q.show(run, time.Time{})
	servicetest.Eventually(t, "a reader has joined", func() bool { return !q.hot.usedOf(e).IsZero() })
	next := q.Step(t, run, lifecycle.Parsed).Run
	q.hot.hint(run.Ref)
	joined := q.hot.usedOf(e)
	after := q.show(run, time.Time{})
	servicetest.Eventually(t, "another one has come", func() bool { return q.hot.usedOf(e).After(joined) })

	q.hot.mu.Lock()
	e.reading, old.view = nil, q.hot.learn(e, run, old.began, old.hints)
	q.hot.mu.Unlock()
	close(old.done)
	if got := before.version(t); got != run.UpdatedAt {
		t.Errorf("who came before the hint waited for more than the read: %s", got)
	}
	if got := after.version(t); got != next.UpdatedAt {
		t.Errorf("who came after the hint was shown %s; want %s", got, next.UpdatedAt)
	}
	if got := q.show(run, time.Time{}).version(t); got != next.UpdatedAt {
		t.Errorf("the overtaken read is believed: %s", got)
	}
}

// A client that shows a newer version than this replica has seen makes it read; one that shows a version that never was costs a read
// and is shown what is.
func TestNobodyReadsBackwards(t *testing.T) {
	t.Parallel()
	q := still(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	q.get(t, path(run))
	next := q.Step(t, run, lifecycle.Parsed).Run // of which this replica is not told
	for _, tags := range []string{web.ETag(next.ID, next.UpdatedAt), "W/" + web.ETag(next.ID, next.UpdatedAt), `"x", ` + web.ETag(next.ID, next.UpdatedAt)} {
		if reply := q.Send(t, "GET", path(run), q.Owner, "", "If-None-Match", tags); reply.Status != 304 {
			t.Errorf("%s: %d, ETag %s", tags, reply.Status, reply.Header.Get("Etag"))
		}
	}
	last := q.Step(t, next, lifecycle.Confirm).Run
	never := web.ETag(last.ID, last.UpdatedAt.Add(time.Hour))
	if got := q.get(t, path(run), "If-None-Match", never).Header.Get("Etag"); got != web.ETag(last.ID, last.UpdatedAt) {
		t.Errorf("a version that never was is answered with %s", got)
	}
}

// What one tenant has made hot is as unknown to another as ever, and is asked of PostgreSQL like any unknown id.
func TestHotRunsAreTheirTenantsOwn(t *testing.T) {
	t.Parallel()
	q := still(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	q.get(t, path(run))
	for range 2 {
		for _, p := range []servicetest.Principal{q.OtherProject, q.OtherOrganization, q.Intruder} {
			before := q.Asked()
			q.Send(t, "GET", servicetest.Path(run, p.ProjectID), p, "").Refused(t, 404, "not_found")
			if q.Asked() == before {
				t.Errorf("%s is refused without a look: that tells that the run is there", p.Name)
			}
		}
	}
	q.get(t, path(run))
	if n := q.hot.count(); n != 1 {
		t.Errorf("%d entries; want the owner's alone", n)
	}
}

// Of reads that overlap the newer version stays; a database that was put back is believed.
func TestVersionsDoNotGoBackUnlessTheDatabaseDoes(t *testing.T) {
	t.Parallel()
	q := still(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	newer := run
	newer.UpdatedAt = run.UpdatedAt.Add(time.Second)
	e := q.hot.entryOf(run)
	q.hot.mu.Lock()
	defer q.hot.mu.Unlock()
	early := time.Now()
	q.hot.learn(e, newer, early, 0)
	if v := q.hot.learn(e, run, early, 0); v.run.UpdatedAt != newer.UpdatedAt || e.version != newer.UpdatedAt {
		t.Error("a read that had begun before brought the older version back")
	}
	if v := q.hot.learn(e, run, time.Now(), 0); v.run.UpdatedAt != run.UpdatedAt || e.version != run.UpdatedAt {
		t.Error("what PostgreSQL says now is not believed")
	}
}

// A flood of hints, for runs that are there and for such as never were, leaves nothing behind, answers nobody, and makes PostgreSQL read
// no more than one thing at a time.
func TestAFloodOfHints(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	waiting := q.waitFor(t, run, "wait=25")
	var flood sync.WaitGroup
	for range 4 {
		flood.Go(func() {
			for range 20_000 {
				q.hot.hint(run.Ref)
				q.hot.hint(lifecycle.Ref{Kind: lifecycle.WF2Des, ID: uuid.NewV7().String()})
			}
		})
	}
	flood.Wait()
	if n := q.hot.count(); n != 1 {
		t.Errorf("%d entries; want 1", n)
	}
	servicetest.Eventually(t, "the last hint is heeded", func() bool { return q.hot.heeds(run.Ref) })
	select {
	case <-waiting.done:
		t.Errorf("who waits was answered %d %s", waiting.got.Status, waiting.got.Body)
	default:
	}
	next := q.Step(t, run, lifecycle.Parsed).Run
	q.hot.hint(run.Ref)
	if reply := waiting.answer(t); reply.Header.Get("Etag") != web.ETag(next.ID, next.UpdatedAt) {
		t.Errorf("after the flood: %d %s", reply.Status, reply.Body)
	}
}

// What is kept is bounded in bytes, and runs that nobody asks for are let go.
func TestHotIsBounded(t *testing.T) {
	t.Parallel()
	h := newHot(nil)
	prompt := strings.Repeat("x", 32<<10)
	var waits []*waiter
	for i := range 3 * memory / (3 * len(prompt)) {
		run := lifecycle.Run{Ref: lifecycle.Ref{Kind: lifecycle.WF2Des, ID: fmt.Sprint(i)}, Prompt: &prompt, UpdatedAt: time.Now()}
		if i%100 == 0 {
			waits = append(waits, h.wait(run.Ref, run.Tenant, false))
		}
		h.mu.Lock()
		e := h.entry(run.Ref, run.Tenant)
		e.used = time.Now()
		h.learn(e, run, time.Now(), 0)
		if h.size > memory {
			t.Fatalf("%d bytes are kept", h.size)
		}
		h.mu.Unlock()
	}
	kept := 0
	for _, entries := range h.runs {
		for _, e := range entries {
			kept += e.view.bytes()
			e.used = e.used.Add(-idle)
		}
	}
	if kept != h.size || kept < memory/2 {
		t.Errorf("%d bytes are kept, and %d are counted", kept, h.size)
	}
	h.sweep()
	if len(h.runs) != len(waits) {
		t.Errorf("%d runs are kept for %d who wait", len(h.runs), len(waits))
	}
	for _, w := range waits {
		w.leave()
	}
	if h.sweep(); len(h.runs) != 0 || h.size != 0 {
		t.Errorf("nobody waits, and %d runs with %d bytes are kept", len(h.runs), h.size)
	}
}

// While PostgreSQL does not answer nothing old is shown, and as soon as it does everything goes on: who waits is told what happened.
func TestHotWhilePostgreSQLIsSilent(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	waiting := q.waitFor(t, run, "wait=25")
	tx := q.held(t, run.Kind)
	q.hot.hint(run.Ref)
	q.Send(t, "GET", path(run), q.Owner, "").Refused(t, 503, "unavailable")
	next := move(tx, run)
	tx.Commit()
	if reply := waiting.answer(t); reply.Header.Get("Etag") != web.ETag(run.ID, next) {
		t.Errorf("who waited: %d %s", reply.Status, reply.Body)
	}
	if got := q.get(t, path(run)).Header.Get("Etag"); got != web.ETag(run.ID, next) {
		t.Errorf("afterwards the version is %s", got)
	}
}

// A request that is given up is answered at once, though its read goes on for the others.
func TestWhoGivesUpLeavesTheReadToOthers(t *testing.T) {
	t.Parallel()
	q := still(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	tx := q.held(t, run.Kind)
	ctx, giveUp := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := q.hot.show(ctx, run.Ref, run.Tenant, time.Time{})
		first <- err
	}()
	servicetest.Eventually(t, "somebody reads", func() bool { return q.blocked(t) == 1 })
	second := q.show(run, time.Time{})
	giveUp()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up got %v", err)
	}
	tx.Commit()
	second.version(t)
}

// entryOf is the run's entry, made where there is none.
func (h *hot) entryOf(run lifecycle.Run) *entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.entry(run.Ref, run.Tenant)
}

func (h *hot) usedOf(e *entry) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return e.used
}

func (h *hot) count() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, entries := range h.runs {
		n += len(entries)
	}
	return n
}

// A read that had begun before a newer version was read is not kept in its place, not even when that has been let go for lack of room or
// the run is gone. Catches a view that goes back.
func TestALateReadIsNotKept(t *testing.T) {
	t.Parallel()
	q := still(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	newer := run
	newer.UpdatedAt = run.UpdatedAt.Add(time.Second)
	e := q.hot.entryOf(run)
	w := q.hot.wait(run.Ref, run.Tenant, false)
	defer w.leave()
	q.hot.mu.Lock()
	defer q.hot.mu.Unlock()
	early := time.Now()
	q.hot.learn(e, newer, early, 0)
	q.hot.keep(e, nil)
	if q.hot.learn(e, run, early, 0); e.view != nil || e.version != newer.UpdatedAt {
		t.Errorf("the older version stands in the place of the newer: %v", e.version)
	}
	q.hot.gone(e)
	if q.hot.learn(e, run, early, 0); e.view != nil {
		t.Error("a run that is gone is back")
	}
	if q.hot.learn(e, run, time.Now(), 0); e.view == nil {
		t.Error("a run that is there again is not shown")
	}
}
