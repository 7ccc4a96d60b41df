package store_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"uuid"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"github.com/google/go-cmp/cmp"
)

// crowd sends all calls at the same time and gives what was stored. All others have to be refused or to come too late.
func (w *world) crowd(t *testing.T, calls []call) (stored []lifecycle.Run) {
	t.Helper()
	results := make([]result, len(calls))
	var all sync.WaitGroup
	for i, c := range calls {
		all.Go(func() { results[i] = c(context.WithoutCancel(t.Context()), w.Store) })
	}
	all.Wait()
	for _, r := range results {
		refused := errors.As(r.err, new(*lifecycle.OpenRunError)) || errors.As(r.err, new(*lifecycle.RefusedError)) || errors.Is(r.err, lifecycle.ErrNotFound)
		switch {
		case r.err == nil && r.outcome == lifecycle.Applied:
			stored = append(stored, r.run)
		case r.err != nil && !refused:
			t.Errorf("told %v", r.err)
		}
	}
	return stored
}

// mustAddUp fails unless what was handed over is all that lies under a lease, each once and as a claim would give it out, and tells the
// stored steps. Then it has arrived.
func (w *world) mustAddUp(t *testing.T, l lanes, stored []lifecycle.Run) {
	t.Helper()
	handed := l.handed()
	var leased []int64
	must(t, w.sql.SelectContext(t.Context(), &leased, `SELECT id FROM outbox WHERE tries = 1 AND due_at > clock_timestamp() ORDER BY id`))
	if diff := cmp.Diff(leased, handed.ids()); diff != "" {
		t.Errorf("(-born under a lease +handed over):\n%s", diff)
	}
	var told, did []string
	for _, p := range handed.Events {
		told = append(told, p.Load.Event.Run.ID+" "+string(p.Load.Event.To))
	}
	for _, run := range stored {
		did = append(did, run.ID+" "+string(run.State))
	}
	slices.Sort(told)
	slices.Sort(did)
	if diff := cmp.Diff(did, told); diff != "" {
		t.Errorf("(-stored +handed over):\n%s", diff)
	}
	if now := w.claimed(t); now.kinds() != "" || l.waiting() != "" {
		t.Errorf("%q had to be claimed", now.kinds())
	}
	w.endLeases(t)
	if diff := cmp.Diff(handed.again(), w.claimed(t), whenever); diff != "" {
		t.Errorf("(-handed over +claimed after the lease):\n%s", diff)
	}
	must(t, w.Sent(t.Context(), handed.ids()))
}

// Catches answers of a batch that are handed over under another's number or row, twice, or although they were refused.
func TestACrowdIsHandedWhatItHasStored(t *testing.T) {
	t.Parallel()
	w := openTelling(t, bothEffects)
	l := lanesOf(w.Store)
	var creations []call
	for i := range 60 {
		c := w.creation(lifecycle.Kinds[i%2])
		rival, stranger := c, w.creation(c.Run.Kind)
		rival.Run.ID = uuid.NewV7().String()
		stranger.Run.ProjectID = 999
		creations = append(creations, creating(c), creating(rival), creating(stranger))
	}
	runs := w.crowd(t, creations)
	if len(runs) != 30+2*30 { // of two for one node one is refused; pages have no node
		t.Fatalf("%d runs were stored", len(runs))
	}
	w.mustAddUp(t, l, runs)

	var commands []call
	for _, run := range runs {
		superseded := command(lifecycle.Fail, run)
		superseded.Attempt = 0
		rival := map[lifecycle.Kind]lifecycle.Verb{lifecycle.WF2Des: lifecycle.Cancel, lifecycle.Code2WF: lifecycle.Complete}[run.Kind]
		commands = append(commands, applying(command(lifecycle.Fail, run)), applying(superseded), applying(command(rival, run)))
	}
	ended := w.crowd(t, commands)
	if len(ended) != len(runs) {
		t.Fatalf("%d runs ended %d times", len(runs), len(ended))
	}
	w.mustAddUp(t, l, ended)
}

// Catches a late word, or one that changes nothing, that is told to the world, and a lane that is woken for it.
func TestALateWordIsNotHandedOver(t *testing.T) {
	t.Parallel()
	w := openTelling(t, bothEffects)
	l := lanesOf(w.Store)
	run := w.in(t, lifecycle.Assembling, w.creation(lifecycle.WF2Des))
	again := command(lifecycle.Confirm, run)
	ended := w.apply(t, command(lifecycle.Complete, run)).Run
	must(t, w.Sent(t.Context(), l.handed().ids()))
	l.waiting()
	superseded := command(lifecycle.Complete, ended)
	superseded.Attempt = 0
	for want, cmd := range map[lifecycle.Outcome]lifecycle.Command{
		lifecycle.Superseded: superseded, lifecycle.Duplicate: command(lifecycle.Complete, ended), lifecycle.AlreadyTerminal: command(lifecycle.Fail, ended),
	} {
		if got := w.apply(t, cmd).Outcome; got != want {
			t.Errorf("the outcome is %s, want %s", got, want)
		}
	}
	w.Apply(t.Context(), again)
	w.Create(t.Context(), store.Creation{Run: ended, By: designer})
	if handed, told := l.handed().kinds(), l.waiting(); handed != "" || told != "" {
		t.Errorf("handed over %q, told to claim %q", handed, told)
	}
}

// Catches a lane that tells the world what may never have been stored, and entries that stay lost when nobody is handed them.
func TestAnUnknownOutcomeIsNotHandedOver(t *testing.T) {
	t.Parallel()
	for about, say := range map[string]func(*world, *store.Store, *line, cut) error{
		"create": func(w *world, s *store.Store, l *line, rule cut) error {
			c := w.creation(lifecycle.Code2WF)
			rule.word = c.Run.ID
			l.follow(rule)
			_, err := s.Create(context.Background(), c)
			return err
		},
		"create once": func(w *world, s *store.Store, l *line, rule cut) error {
			l.follow(rule)
			_, _, err := s.CreateOnce(context.Background(), w.creation(lifecycle.Code2WF), theKey)
			return err
		},
		"apply": func(w *world, s *store.Store, l *line, rule cut) error {
			run, err := w.Create(context.Background(), w.creation(lifecycle.Code2WF))
			if err == nil {
				_, err = w.sql.Exec(`DELETE FROM outbox`)
			}
			if err == nil {
				l.follow(rule)
				_, err = s.Apply(context.Background(), command(lifecycle.Fail, run))
			}
			return err
		},
	} {
		for _, arrives := range []bool{true, false} {
			w := open(t)
			line := lineTo(t, w.url)
			s := openStore(t, line.url, store.Options{Pool: 2})
			l := lanesOf(s)
			if err := say(w, s, line, cut{word: "COMMIT", arrives: arrives}); !errors.Is(err, lifecycle.ErrOutcomeUnknown) {
				t.Errorf("%s, arrives %t: %v, want ErrOutcomeUnknown", about, arrives, err)
			}
			if handed, told := l.handed().kinds(), l.waiting(); handed != "" || told != "" {
				t.Errorf("%s, arrives %t: handed over %q, told to claim %q", about, arrives, handed, told)
			}
			want := map[string]string{"create": "jobs events", "create once": "jobs events", "apply": "events"}[about]
			if !arrives {
				want = ""
			}
			until(t, "what was stored is claimed after its lease", func() bool {
				w.endLeases(t)
				return w.claimed(t).kinds() == want
			})
		}
	}
}

// The line breaks under an insert, and it is sent again. Catches a run that is handed over by the try that failed, or not by the other.
func TestASecondTryIsHandedOverOnce(t *testing.T) {
	t.Parallel()
	w := open(t)
	line := lineTo(t, w.url)
	s := openStore(t, line.url, store.Options{Pool: 2})
	l := lanesOf(s)
	for arrives, want := range map[bool]string{true: "", false: "jobs events"} {
		if _, err := s.Create(t.Context(), w.creation(lifecycle.Code2WF)); err != nil { // so that the statement is prepared
			t.Fatal(err)
		}
		l.handed()
		c := w.creation(lifecycle.Code2WF)
		line.follow(cut{word: c.Run.ID, arrives: arrives, times: 1})
		_, err := s.Create(t.Context(), c)
		handed := l.handed()
		if err != nil { // nobody knows whether it is stored
			want = ""
		}
		if handed.kinds() != want {
			t.Errorf("the first try arrives %t (%v): handed over %q, want %q", arrives, err, handed.kinds(), want)
		}
		line.follow(cut{})
	}
}
