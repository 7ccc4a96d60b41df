package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"github.com/google/go-cmp/cmp"
)

// Catches an end that was decided by a pulse read before the lock was had, and a worker who is told to go on with a run that ends.
func TestPulseAndEndWaitForEachOther(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, kind := range lifecycle.Kinds {
		state := openStates[kind][0]
		run := w.in(t, state, w.creation(kind))
		w.ago(t, run, 10*time.Hour)
		end := store.OverdueRun{Ref: run.Ref, State: state, Attempt: 1, Limit: time.Hour}.End(backend, "Too late.")

		tx := w.sql.MustBegin()
		tx.MustExec(`SELECT FROM `+string(kind)+` WHERE id = $1 FOR SHARE`, run.ID)
		tx.MustExec(`INSERT INTO run_pulse VALUES ($1, $2, 1, clock_timestamp())`, kind, run.ID)
		told := make(chan store.Applied, 1)
		go func() { got, _ := w.Apply(t.Context(), end); told <- got }()
		w.untilBlocked(t)
		must(t, tx.Commit())
		if got := <-told; got.Outcome != lifecycle.Spared {
			t.Errorf("%s: a run whose worker spoke while the reaper waited: %q", kind, got.Outcome)
		}

		tx = w.sql.MustBegin()
		tx.MustExec(`UPDATE `+string(kind)+` SET attempt = 2 WHERE id = $1`, run.ID)
		noted := make(chan bool, 1)
		go func() { n, _ := w.Pulse(t.Context(), run.Ref, 1); noted <- n }()
		w.untilBlocked(t)
		must(t, tx.Commit())
		if <-noted {
			t.Errorf("%s: a worker is told to go on with an attempt that is over", kind)
		}
	}
}

// Catches pulses of ended runs that stay for ever, and an open run whose pulse is forgotten.
func TestForgetPulses(t *testing.T) {
	t.Parallel()
	w := open(t)
	var want []string
	for kind, states := range openStates {
		for range 3 {
			run := w.in(t, states[0], w.creation(kind))
			w.heardAgo(t, run, 1, 0)
			want = append(want, fmt.Sprint(kind, " ", run.ID))
			w.heardAgo(t, w.in(t, lifecycle.Failed, w.creation(kind)), 1, 0)
		}
	}
	var forgotten []int
	for range 4 {
		n, err := w.ForgetPulses(t.Context(), 4)
		must(t, err)
		forgotten = append(forgotten, n)
	}
	if diff := cmp.Diff([]int{4, 2, 0, 0}, forgotten); diff != "" {
		t.Errorf("forgotten (-want +got):\n%s", diff)
	}
	var got []string
	must(t, w.sql.SelectContext(t.Context(), &got, `SELECT kind || ' ' || run_id FROM run_pulse`))
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}
