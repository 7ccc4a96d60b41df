package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

const (
	keep       = 48 * time.Hour
	young, old = keep - time.Hour, keep + time.Hour
)

// letGo goes through everything once, as service intake does, in pages so small that there are several.
func letGo(ctx context.Context, s *store.Store) error {
	for n := 3; n == 3; {
		var err error
		if n, err = s.LetGoSkipped(ctx, keep, 3); err != nil {
			return err
		}
	}
	for _, kind := range lifecycle.Kinds {
		for lines := 1; lines > 0; {
			gone, err := s.LetGoDeleted(ctx, kind, keep, 3)
			if err != nil {
				return err
			}
			lines = gone.Lines
		}
		for after, more := "", true; more; {
			last, _, err := s.LetGoEnded(ctx, kind, keep, after, 3)
			if err != nil {
				return err
			}
			after, more = last, last != ""
		}
	}
	return nil
}

// past makes everything about a run as old as given. Its id stays: it is what the run is called everywhere.
func (w *world) past(t *testing.T, run lifecycle.Run, age time.Duration) {
	t.Helper()
	ago := fmt.Sprintf(`interval '%d seconds'`, int(age.Seconds()))
	w.exec(t, `ALTER TABLE run_event DISABLE TRIGGER run_event_append_only`)
	w.exec(t, `UPDATE run_event SET at = at - `+ago+`, version = version - `+ago+` WHERE run_id = $1`, run.ID)
	w.exec(t, `UPDATE outbox SET created_at = created_at - `+ago+`, settled_at = settled_at - `+ago+` WHERE run_id = $1`, run.ID)
	w.exec(t, `UPDATE `+string(run.Kind)+` SET created_at = created_at - `+ago+`, updated_at = updated_at - `+ago+`, deleted_at = deleted_at - `+ago+`
		WHERE id = $1`, run.ID)
}

// aged asks for a run whose id was made so long ago.
func (w *world) aged(kind lifecycle.Kind, age time.Duration) store.Creation {
	c := w.creation(kind)
	ms := time.Now().Add(-age).UnixMilli()
	c.Run.ID = fmt.Sprintf("%08x-%04x", ms>>16, ms&0xffff) + c.Run.ID[13:]
	return c
}

// kept is what there is about a run, in short.
type kept struct{ Lines, First, Entries int }

func (w *world) kept(t *testing.T, run lifecycle.Run) kept {
	t.Helper()
	var k kept
	err := w.sql.QueryRowxContext(t.Context(), `SELECT count(*), coalesce(min(seq), 0), (SELECT count(*) FROM outbox WHERE run_id = $1)
		FROM run_event WHERE run_id = $1`, run.ID).Scan(&k.Lines, &k.First, &k.Entries)
	must(t, err)
	return k
}

// told lets everything leave that waits.
func (w *world) told(t *testing.T) {
	t.Helper()
	w.exec(t, `DELETE FROM outbox WHERE state = 'pending'`)
}

// sorts are runs of each sort, and what must be left of them after retention.
var sorts = []struct {
	name    string
	kind    lifecycle.Kind
	state   lifecycle.State
	age     time.Duration
	arrange func(*testing.T, *world, lifecycle.Run)
	want    kept
}{
	{"open", lifecycle.WF2Des, lifecycle.Parsing, old, nil, kept{1, 1, 0}},
	{"open, waiting for the designer", lifecycle.WF2Des, lifecycle.AwaitingConfirm, old, nil, kept{2, 1, 0}},
	{"open code2wf", lifecycle.Code2WF, lifecycle.Processing, old, nil, kept{1, 1, 0}},
	{"ended lately", lifecycle.WF2Des, lifecycle.Completed, young, nil, kept{4, 1, 0}},
	{"ended long ago: the newest line stays", lifecycle.WF2Des, lifecycle.Completed, old, nil, kept{1, 4, 0}},
	{"code2wf, ended long ago", lifecycle.Code2WF, lifecycle.Failed, old, nil, kept{1, 2, 0}},
	{"rejected long ago", lifecycle.WF2Des, lifecycle.Rejected, old, nil, kept{1, 3, 0}},
	{"ended long ago and placed now", lifecycle.WF2Des, lifecycle.Completed, old, func(t *testing.T, w *world, run lifecycle.Run) {
		w.apply(t, command(lifecycle.Place, run))
		w.told(t)
	}, kept{5, 1, 0}},
	{"ended long ago, with something set aside", lifecycle.WF2Des, lifecycle.Failed, old, func(t *testing.T, w *world, run lifecycle.Run) {
		w.exec(t, `INSERT INTO outbox (destination, kind, run_id, attempt, stage, state, settled_at) VALUES ('jobs', 'wf2des', $1, 1, 'parse', 'set_aside', now())`, run.ID)
	}, kept{1, 2, 0}},
	{"ended long ago, with something still to be told", lifecycle.WF2Des, lifecycle.Failed, old, func(t *testing.T, w *world, run lifecycle.Run) {
		w.exec(t, `INSERT INTO outbox (destination, kind, run_id, attempt, seq) VALUES ('events', 'wf2des', $1, 1, 2)`, run.ID)
	}, kept{2, 1, 1}},
	{"skipped long ago, of an open run", lifecycle.WF2Des, lifecycle.Parsing, old, func(t *testing.T, w *world, run lifecycle.Run) {
		w.exec(t, `INSERT INTO outbox (destination, kind, run_id, attempt, stage, state, settled_at)
				VALUES ('jobs', 'wf2des', $1, 1, 'parse', 'skipped', now() - interval '99 days')`, run.ID)
	}, kept{1, 1, 1}},
	{"skipped long ago, of a run that was placed now", lifecycle.WF2Des, lifecycle.Completed, old, func(t *testing.T, w *world, run lifecycle.Run) {
		w.apply(t, command(lifecycle.Place, run))
		w.told(t)
		w.exec(t, `INSERT INTO outbox (destination, kind, run_id, attempt, stage, state, settled_at)
				VALUES ('jobs', 'wf2des', $1, 1, 'parse', 'skipped', now() - interval '99 days')`, run.ID)
	}, kept{5, 1, 0}},
	{"skipped lately", lifecycle.WF2Des, lifecycle.Completed, young, func(t *testing.T, w *world, run lifecycle.Run) {
		w.exec(t, `INSERT INTO outbox (destination, kind, run_id, attempt, stage, state, settled_at) VALUES ('jobs', 'wf2des', $1, 1, 'parse', 'skipped', now())`, run.ID)
	}, kept{4, 1, 1}},
	{"deleted now", lifecycle.WF2Des, lifecycle.Cancelled, old, func(t *testing.T, w *world, run lifecycle.Run) {
		w.apply(t, command(lifecycle.Delete, run))
		w.told(t)
	}, kept{3, 1, 0}},
	{"deleted long ago", lifecycle.WF2Des, lifecycle.Cancelled, 0, func(t *testing.T, w *world, run lifecycle.Run) {
		w.apply(t, command(lifecycle.Delete, run))
		w.told(t)
		w.past(t, run, old)
	}, kept{0, 0, 0}},
	{"deleted long ago, when little was left of it", lifecycle.WF2Des, lifecycle.Cancelled, old, func(t *testing.T, w *world, run lifecycle.Run) {
		must(t, letGo(t.Context(), w.Store))
		w.apply(t, command(lifecycle.Delete, run))
		w.told(t)
		if k := w.kept(t, run); k != (kept{2, 2, 0}) {
			t.Errorf("a line goes on from the newest: %+v", k)
		}
		w.past(t, run, old)
	}, kept{0, 0, 0}},
}

// What must be so after retention, for each sort of run. Catches a run that is touched and should not be, and one that is not and should.
func TestRetention(t *testing.T) {
	t.Parallel()
	for _, c := range sorts {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := open(t)
			run := w.in(t, c.state, w.aged(c.kind, old+time.Hour))
			w.told(t)
			w.past(t, run, c.age)
			if c.arrange != nil {
				c.arrange(t, w, run)
			}
			row, err := w.RunOfAnyTenant(t.Context(), run.Ref)
			must(t, err)
			must(t, letGo(t.Context(), w.Store))
			if got := w.kept(t, run); got != c.want {
				t.Errorf("kept %+v, want %+v", got, c.want)
			}
			if after, err := w.RunOfAnyTenant(t.Context(), run.Ref); err != nil || !cmp.Equal(row, after) {
				t.Errorf("the row changed: %v %s", err, cmp.Diff(row, after))
			}
		})
	}
}

// Random runs of random ages, with several programs letting go and workers and designers going on. Catches an open run, a young one or
// one with something to tell that loses anything, and programs that get into each other's way.
func TestRetentionOfManyRuns(t *testing.T) {
	t.Parallel()
	w := open(t)
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(all []lifecycle.State) lifecycle.State { return all[random.IntN(len(all))] }
	var runs []lifecycle.Run
	for range 60 {
		kind, state := lifecycle.WF2Des, pick(lifecycle.States)
		if state == lifecycle.Processing || random.IntN(3) == 0 {
			kind, state = lifecycle.Code2WF, pick([]lifecycle.State{lifecycle.Processing, lifecycle.Completed, lifecycle.Failed})
		}
		age := time.Duration(random.IntN(96)) * time.Hour
		run := w.in(t, state, w.aged(kind, age+time.Hour))
		if random.IntN(4) > 0 {
			w.exec(t, `DELETE FROM outbox WHERE run_id = $1`, run.ID)
		}
		w.past(t, run, age)
		runs = append(runs, run)
	}
	before := map[string]kept{}
	for _, run := range runs {
		before[run.ID] = w.kept(t, run)
	}
	var all errgroup.Group
	for range 3 {
		all.Go(func() error { return letGo(context.WithoutCancel(t.Context()), w.Store) })
	}
	for _, run := range runs[:20] { // workers who come too late, or not
		all.Go(func() error {
			_, err := w.Apply(context.WithoutCancel(t.Context()), command(lifecycle.Fail, run))
			return err
		})
	}
	must(t, all.Wait())
	must(t, letGo(t.Context(), w.Store))
	for i, run := range runs {
		row, err := w.RunOfAnyTenant(t.Context(), run.Ref)
		must(t, err)
		was, is := before[run.ID], w.kept(t, run)
		due := run.Ended() && time.Since(run.UpdatedAt) >= 0 && time.Since(row.UpdatedAt) > keep && was.Entries == 0
		switch {
		case due && is.First == 1:
			t.Errorf("run %d, %s since %s, still has its whole timeline", i, row.State, row.UpdatedAt)
		case !due && (is.Lines < was.Lines || is.First != 1 || is.Entries < was.Entries):
			t.Errorf("run %d, %s since %s, has lost something: %+v, then %+v", i, row.State, row.UpdatedAt, was, is)
		}
	}
}
