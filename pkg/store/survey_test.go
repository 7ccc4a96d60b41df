package store_test

import (
	"strings"
	"testing"
	"time"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

// Catches a survey that is fenced in by a tenant, hides deleted runs, mixes states up, or whose pages overlap.
func TestSurvey(t *testing.T) {
	t.Parallel()
	w := open(t)
	other := w.creation(lifecycle.WF2Des)
	other.Run.Tenant = lifecycle.Tenant{OrganizationID: platform.OtherOrganizationID, ProjectID: platform.OtherOrganizationProjectID}
	other.Run.FigmaFileKey = "their file"
	names := map[string]string{}
	for i, run := range []lifecycle.Run{
		w.create(t, other), w.in(t, lifecycle.AwaitingConfirm, w.creation(lifecycle.WF2Des)),
		w.in(t, lifecycle.Failed, w.creation(lifecycle.WF2Des)), w.in(t, lifecycle.Parsing, w.creation(lifecycle.WF2Des)),
		w.in(t, lifecycle.Processing, w.creation(lifecycle.Code2WF)), w.in(t, lifecycle.Failed, w.creation(lifecycle.Code2WF)),
	} {
		names[run.ID] = string(rune('a' + i))
		if run.State == lifecycle.Failed {
			w.apply(t, command(lifecycle.Delete, run))
		}
	}
	idOf := func(name string) string {
		for id, n := range names {
			if n == name {
				return id
			}
		}
		return ""
	}
	const wf2des, code2wf = lifecycle.WF2Des, lifecycle.Code2WF
	for _, c := range []struct {
		survey store.Survey
		limit  int
		want   string
	}{
		{store.Survey{Kind: wf2des}, 10, "dcba"},
		{store.Survey{Kind: code2wf}, 10, "fe"},
		{store.Survey{Kind: wf2des}, 2, "dc"},
		{store.Survey{Kind: wf2des, Before: idOf("c")}, 10, "ba"},
		{store.Survey{Kind: wf2des, OrganizationID: platform.OtherOrganizationID}, 10, "a"},
		{store.Survey{Kind: wf2des, ProjectID: platform.ProjectID}, 10, "dcb"},
		{store.Survey{Kind: wf2des, FigmaFileKey: "their file"}, 10, "a"},
		{store.Survey{Kind: wf2des, States: []lifecycle.State{lifecycle.Parsing}}, 10, "da"},
		{store.Survey{Kind: wf2des, States: []lifecycle.State{lifecycle.AwaitingConfirm, lifecycle.Failed}}, 10, "cb"},
		{store.Survey{Kind: wf2des, States: []lifecycle.State{lifecycle.Processing}}, 10, ""},
		{store.Survey{Kind: code2wf, States: []lifecycle.State{lifecycle.Processing, lifecycle.Parsing}}, 10, "e"},
		{store.Survey{Kind: code2wf, States: []lifecycle.State{lifecycle.Cancelled}}, 10, ""},
	} {
		found, err := w.Survey(t.Context(), c.survey, c.limit)
		must(t, err)
		var got strings.Builder
		for _, run := range found {
			got.WriteString(names[run.ID])
		}
		if got.String() != c.want {
			t.Errorf("%+v: %q, want %q", c.survey, got.String(), c.want)
		}
	}
}

// Catches a stuck run that is not found, one that is found although it ended or changed lately, a wrong order, and what is told about it.
func TestIdle(t *testing.T) {
	t.Parallel()
	w := open(t)
	young := w.in(t, lifecycle.Parsing, w.creation(lifecycle.WF2Des))
	old := w.in(t, lifecycle.Processing, w.creation(lifecycle.Code2WF))
	older := w.in(t, lifecycle.Assembling, w.creation(lifecycle.WF2Des))
	ended := w.in(t, lifecycle.Cancelled, w.creation(lifecycle.WF2Des))
	for run, hours := range map[string]int{old.ID: 2, older.ID: 3, ended.ID: 4} {
		for _, kind := range lifecycle.Kinds {
			w.exec(t, `UPDATE `+string(kind)+` SET updated_at = now() - $1 * interval '1 hour' WHERE id = $2`, hours, run)
		}
	}
	w.aside(t, old, "jobs")
	idle, err := w.Idle(t.Context(), time.Hour, 10)
	must(t, err)
	if len(idle) != 2 || idle[0].Run.ID != older.ID || idle[1].Run.ID != old.ID {
		t.Fatalf("found %+v", idle)
	}
	if idle[0].Last.What != lifecycle.WasConfirmed || idle[1].Last.What != lifecycle.WasCreated {
		t.Errorf("the last lines are %s and %s", idle[0].Last.What, idle[1].Last.What)
	}
	if f := idle[0].For; f < 3*time.Hour || f > 3*time.Hour+time.Minute {
		t.Errorf("idle for %s, want three hours", f)
	}
	if told := idle[1].Told; len(told) != 2 || told[0].LastError != "refused" || told[0].State != store.SetAside {
		t.Errorf("of the one that is set aside is told: %+v", told)
	}
	w.exec(t, `INSERT INTO run_pulse (kind, run_id, attempt, heard_at) VALUES ('wf2des', $1, 1, now() - interval '5 minutes'), ('code2wf', $2, 7, now())`, older.ID, old.ID)
	if spoke, err := w.Idle(t.Context(), time.Hour, 10); err != nil || len(spoke) != 1 || spoke[0].Run.ID != old.ID {
		t.Errorf("one of them has a worker who spoke lately: %+v, %v", spoke, err)
	}
	w.exec(t, `DELETE FROM run_pulse`)
	if all, err := w.Idle(t.Context(), 0, 10); err != nil || len(all) != 3 || all[2].Run.ID != young.ID {
		t.Errorf("without an age: %+v, %v", all, err)
	}
	if one, err := w.Idle(t.Context(), 0, 1); err != nil || len(one) != 1 || one[0].Run.ID != older.ID {
		t.Errorf("the first one: %+v, %v", one, err)
	}
}
