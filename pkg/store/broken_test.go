package store_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
)

// Catches a queue's jobs that are claimed for another queue, and jobs that nobody claims.
func TestClaimJobsOfSomeWork(t *testing.T) {
	t.Parallel()
	w := open(t)
	wf, code := w.create(t, w.creation(lifecycle.WF2Des)), w.create(t, w.creation(lifecycle.Code2WF))
	c := w.creation(lifecycle.WF2Des)
	c.Run.Edge = lifecycle.EdgeDes2WF
	des := w.create(t, c)
	w.exec(t, `UPDATE outbox SET work = '' WHERE run_id IN ($1, $2)`, des.ID, code.ID) // as a program would that does not know of work
	must(t, w.SortJobs(t.Context()))
	for _, run := range []lifecycle.Run{wf, des, code} {
		parcels, err := w.ClaimJobs(run.Work())(t.Context(), 10, time.Minute)
		must(t, err)
		var got []string
		for _, p := range parcels {
			got = append(got, p.Load.Run.ID)
		}
		if !slices.Equal(got, []string{run.ID}) {
			t.Errorf("%s: claimed %v, want %v", run.Work(), got, run.ID)
		}
	}
}

// An announcement whose timeline line is gone or cannot be read fails alone. Catches a batch that is held up by one of its members.
func TestBrokenAnnouncementsFailAlone(t *testing.T) {
	t.Parallel()
	w := open(t)
	gone, odd, whole := w.create(t, w.creation(lifecycle.Code2WF)), w.create(t, w.creation(lifecycle.Code2WF)), w.create(t, w.creation(lifecycle.Code2WF))
	w.exec(t, `DELETE FROM run_event WHERE run_id = $1`, gone.ID)
	w.exec(t, `DELETE FROM run_event WHERE run_id = $1`, odd.ID)
	w.exec(t, `INSERT INTO run_event (kind, run_id, seq, what, outcome, actor_kind, actor, to_state, attempt, version, at, data)
		VALUES ('code2wf', $1, 1, 'created', 'applied', 'user', 'x', 'processing', 1, now(), now(), '{"flag_count": "x"}')`, odd.ID)
	parcels, err := w.ClaimEvents(t.Context(), 10, time.Minute)
	must(t, err)
	if len(parcels) != 3 {
		t.Fatalf("%d parcels", len(parcels))
	}
	for i, p := range parcels[:2] {
		if !errors.Is(p.Broken, lifecycle.ErrUndeliverable) {
			t.Errorf("parcel %d: %v, want ErrUndeliverable", i, p.Broken)
		}
	}
	if p := parcels[2]; p.Broken != nil || p.Load.Event.Run.ID != whole.ID {
		t.Errorf("the whole one: %v, %v", p.Load.Event.Run, p.Broken)
	}
}

// A run that this program cannot read, for it is of a newer one, is tried again and holds up no other.
func TestJobsOfUnreadableRunsFailAlone(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.exec(t, `ALTER TYPE wf2des_edge ADD VALUE '7'`)
	odd, whole := w.create(t, w.creation(lifecycle.WF2Des)), w.create(t, w.creation(lifecycle.WF2Des))
	w.exec(t, `UPDATE wf2des SET edge = '7' WHERE id = $1`, odd.ID)
	parcels, err := w.ClaimJobs("wf2des")(t.Context(), 10, time.Minute)
	must(t, err)
	if len(parcels) != 2 || parcels[0].Broken == nil || errors.Is(parcels[0].Broken, lifecycle.ErrUndeliverable) || parcels[1].Load.Run.ID != whole.ID {
		t.Errorf("%+v", parcels)
	}
}
