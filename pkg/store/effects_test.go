package store_test

import (
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"framerun.dev/pkg/store/storetest"
	"github.com/google/go-cmp/cmp"
)

// openTelling is a world whose store writes effects.
func openTelling(t *testing.T, e store.Effects) *world {
	t.Helper()
	return openWith(t, store.Options{Effects: e, Alone: storetest.Alone()})
}

var bothEffects = store.Effects{Documents: true, Designs: true}

// ofEdge is a creation of the given edge.
func (w *world) ofEdge(edge lifecycle.Edge, autoConfirm bool) store.Creation {
	c := w.creation(lifecycle.WF2Des)
	c.Run.Edge, c.Run.AutoConfirm = edge, autoConfirm
	return c
}

// effects are the destinations of a run's effects in the outbox, in their order.
func (w *world) effects(t *testing.T, run lifecycle.Ref) []string {
	t.Helper()
	var found []string
	must(t, w.sql.SelectContext(t.Context(), &found, `SELECT o.destination || ' ' || e.what FROM outbox o JOIN run_event e USING (kind, run_id, seq)
WHERE run_id = $1 AND destination NOT IN ('jobs', 'events') ORDER BY o.id`, run.ID))
	return found
}

// Catches an effect that nobody asked for (a design of another edge, a decision that nobody made), one that is missing or doubled, and
// effects that are written although they are switched off.
func TestEffectsOfEveryEnding(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edge       lifecycle.Edge
		auto       bool
		end        lifecycle.State
		both, docs []string
	}{
		"confirmed":      {lifecycle.EdgeWF2Des, false, lifecycle.Assembling, []string{"documents confirmed"}, []string{"documents confirmed"}},
		"rejected":       {lifecycle.EdgeWF2Des, false, lifecycle.Rejected, []string{"documents rejected"}, []string{"documents rejected"}},
		"completed":      {lifecycle.EdgeWF2Des, false, lifecycle.Completed, []string{"documents confirmed", "designs completed"}, []string{"documents confirmed"}},
		"nobody asked":   {lifecycle.EdgeWF2Des, true, lifecycle.Completed, []string{"designs completed"}, nil},
		"the other edge": {lifecycle.EdgeDes2WF, false, lifecycle.Completed, []string{"documents confirmed"}, []string{"documents confirmed"}},
		"failed":         {lifecycle.EdgeWF2Des, false, lifecycle.Failed, nil, nil},
		"cancelled":      {lifecycle.EdgeWF2Des, false, lifecycle.Cancelled, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for e, want := range map[store.Effects][]string{bothEffects: c.both, {Documents: true}: c.docs, {}: nil} {
				w := openTelling(t, e)
				run := w.in(t, c.end, w.ofEdge(c.edge, c.auto))
				if diff := cmp.Diff(want, w.effects(t, run.Ref)); diff != "" {
					t.Errorf("with %+v (-want +got):\n%s", e, diff)
				}
			}
		})
	}
}

// Catches a code2wf run that lands in the registry.
func TestAPagesCodeIsNoDesign(t *testing.T) {
	t.Parallel()
	w := openTelling(t, bothEffects)
	run := w.in(t, lifecycle.Completed, w.creation(lifecycle.Code2WF))
	if got := w.effects(t, run.Ref); got != nil {
		t.Errorf("a code2wf run has the effects %q", got)
	}
}

// Catches a decision or an ending that is told a second time, and one told although it came too late.
func TestARepeatedStepHasNoSecondEffect(t *testing.T) {
	t.Parallel()
	w := openTelling(t, bothEffects)
	run := w.in(t, lifecycle.AwaitingConfirm, w.creation(lifecycle.WF2Des))
	for range 2 {
		w.apply(t, command(lifecycle.Confirm, run))
	}
	for range 2 {
		w.apply(t, command(lifecycle.Complete, run))
	}
	w.apply(t, command(lifecycle.Fail, run))
	w.apply(t, command(lifecycle.Place, run))
	w.apply(t, command(lifecycle.Delete, run))
	if diff := cmp.Diff([]string{"documents confirmed", "designs completed"}, w.effects(t, run.Ref)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Catches an effect that is stored without its row, or a row without its effect.
func TestEffectStandsAndFallsWithItsRow(t *testing.T) {
	t.Parallel()
	w := openTelling(t, bothEffects)
	run := w.in(t, lifecycle.Assembling, w.creation(lifecycle.WF2Des))
	w.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no designs today'; END $$`)
	w.exec(t, `CREATE TRIGGER refuse BEFORE INSERT ON outbox FOR EACH ROW WHEN (NEW.destination = 'designs') EXECUTE FUNCTION refuse()`)
	w.unchanged(t, "a completion whose effect cannot be stored", func() {
		if got, err := w.Apply(t.Context(), command(lifecycle.Complete, run)); err == nil {
			t.Errorf("it was answered %s", got.Outcome)
		}
	})
}

// Catches a claim that gives out what belongs to another lane, or a decision that does not carry who, when and of which attempt.
func TestClaimDecisions(t *testing.T) {
	t.Parallel()
	w := openTelling(t, bothEffects)
	run := w.in(t, lifecycle.AwaitingConfirm, w.creation(lifecycle.WF2Des))
	w.exec(t, `UPDATE wf2des SET attempt = 3`)
	confirm := command(lifecycle.Confirm, w.read(t, run.Ref))
	w.apply(t, confirm)
	w.apply(t, command(lifecycle.Complete, w.read(t, run.Ref)))

	parcels, err := w.ClaimDecisions(t.Context(), 100, lease)
	must(t, err)
	if len(parcels) != 1 || parcels[0].Broken != nil {
		t.Fatalf("given out: %+v", parcels)
	}
	line := w.timeline(t, run.Ref)[2]
	if diff := cmp.Diff(lifecycle.Announcement{Event: line, Tenant: tenant}, parcels[0].Load); diff != "" {
		t.Errorf("(-line +parcel):\n%s", diff)
	}
	if e := parcels[0].Load.Event; e.Attempt != 3 || e.By != designer || e.What != lifecycle.WasConfirmed {
		t.Errorf("the decision is %+v", e)
	}
	if again, err := w.ClaimDecisions(t.Context(), 100, lease); len(again) > 0 || err != nil {
		t.Errorf("given out a second time: %v, %v", again, err)
	}
}

// Catches a landing that is not the run as it was completed: another result, another time, a stranger's name; and a run that does not
// land because it was deleted before its effect was carried.
func TestClaimDesigns(t *testing.T) {
	t.Parallel()
	w := openTelling(t, bothEffects)
	run := w.in(t, lifecycle.Completed, w.creation(lifecycle.WF2Des))
	completed := w.timeline(t, run.Ref)[3]
	w.apply(t, command(lifecycle.Delete, run))
	parcels, err := w.ClaimDesigns(t.Context(), 100, lease)
	must(t, err)
	if len(parcels) != 1 || parcels[0].Broken != nil {
		t.Fatalf("given out: %+v", parcels)
	}
	want := lifecycle.Landing{Run: w.read(t, run.Ref), At: completed.At, By: worker}
	if diff := cmp.Diff(want, parcels[0].Load); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if other, err := w.ClaimDecisions(t.Context(), 100, lease); len(other) != 1 || err != nil {
		t.Errorf("the other lane has %v, %v", other, err)
	}
}

// Catches a landing of a run that is gone which is tried for ever, or which takes its neighbours along.
func TestALandingWithoutItsRunIsBroken(t *testing.T) {
	t.Parallel()
	w := openTelling(t, store.Effects{Designs: true})
	gone := w.in(t, lifecycle.Completed, w.creation(lifecycle.WF2Des))
	w.in(t, lifecycle.Completed, w.creation(lifecycle.WF2Des))
	w.exec(t, `DELETE FROM wf2des WHERE id = $1`, gone.ID)
	parcels, err := w.ClaimDesigns(t.Context(), 100, lease)
	must(t, err)
	if len(parcels) != 2 || parcels[0].Broken == nil || parcels[1].Broken != nil {
		t.Fatalf("given out: %+v", parcels)
	}
	must(t, w.SetAside(t.Context(), parcels[0].ID, parcels[0].Tries, parcels[0].Broken.Error()))
}

// Catches an entry that is let go by a relay which lost it meanwhile, or without its cause.
func TestSkip(t *testing.T) {
	t.Parallel()
	w := openTelling(t, store.Effects{Documents: true})
	w.in(t, lifecycle.Assembling, w.creation(lifecycle.WF2Des))
	parcels, err := w.ClaimDecisions(t.Context(), 1, time.Millisecond)
	must(t, err)
	w.endLeases(t)
	again, err := w.ClaimDecisions(t.Context(), 1, lease)
	must(t, err)
	w.unchanged(t, "a relay that slept through its lease", func() { must(t, w.Skip(t.Context(), parcels[0].ID, parcels[0].Tries, "late")) })
	must(t, w.Skip(t.Context(), again[0].ID, again[0].Tries, "outdated"))
	got := value[string](t, w, `SELECT state || ' ' || last_error FROM outbox WHERE destination = 'documents' AND settled_at IS NOT NULL`)
	if got != "skipped outdated" {
		t.Errorf("the entry is %q", got)
	}
}
