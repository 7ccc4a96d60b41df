package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"uuid"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

// gallery makes one run of every sort that a filter can tell apart, named by what is special about it, oldest first.
func (w *world) gallery(t *testing.T, kind lifecycle.Kind) map[string]lifecycle.Run {
	t.Helper()
	runs := map[string]lifecycle.Run{}
	add := func(name string, state lifecycle.State, change func(*lifecycle.Run), more ...lifecycle.Verb) {
		c := w.creation(kind)
		change(&c.Run)
		run := w.in(t, state, c)
		for _, verb := range more {
			run = w.apply(t, command(verb, run)).Run
		}
		runs[name] = run
	}
	plain := func(*lifecycle.Run) {}
	for _, state := range statesOf[kind] {
		add(string(state), state, plain)
	}
	add("placed", lifecycle.Completed, plain, lifecycle.Place)
	add("deleted", lifecycle.Failed, plain, lifecycle.Delete)
	open := statesOf[kind][0]
	add("other file", open, func(r *lifecycle.Run) { r.FigmaFileKey = "other file" })
	add("other screen", open, func(r *lifecycle.Run) { r.ScreenID = "other screen" })
	add("other project", open, func(r *lifecycle.Run) {
		r.ProjectID = platform.OtherProjectID
		if kind == lifecycle.Code2WF {
			r.PageImportID = platform.OtherProjectPageImportID
		}
	})
	if kind == lifecycle.WF2Des {
		add("other edge", open, func(r *lifecycle.Run) { r.Edge = lifecycle.EdgeDes2WF })
	}
	c := w.creation(kind)
	c.Run.AutoConfirm = kind == lifecycle.WF2Des
	unflagged := command(lifecycle.Complete, w.create(t, c))
	unflagged.Result.FlagCount = new(0)
	runs["unflagged"] = w.apply(t, unflagged).Run
	return runs
}

// Catches a filter that does not narrow, narrows by another column or digit, or shows what is deleted or another project's.
func TestListFilters(t *testing.T) {
	t.Parallel()
	w := open(t)
	galleries := map[lifecycle.Kind]map[string]lifecycle.Run{}
	for _, kind := range lifecycle.Kinds {
		galleries[kind] = w.gallery(t, kind)
	}
	for _, c := range []struct {
		kind   lifecycle.Kind
		about  string
		filter store.Filter
		want   string
	}{
		{lifecycle.WF2Des, "nothing", store.Filter{}, `parsing, awaiting_confirm, assembling, completed, failed, rejected, cancelled, placed,
			other file, other screen, other edge, unflagged`},
		{lifecycle.WF2Des, "file", store.Filter{FigmaFileKey: "other file"}, "other file"},
		{lifecycle.WF2Des, "status", store.Filter{Status: lifecycle.StatusProcessing}, "parsing, awaiting_confirm, assembling, other file, other screen, other edge"},
		{lifecycle.WF2Des, "status", store.Filter{Status: lifecycle.StatusCompleted}, "completed, placed, unflagged"},
		{lifecycle.WF2Des, "status", store.Filter{Status: lifecycle.StatusFailed}, "failed"},
		{lifecycle.WF2Des, "status", store.Filter{Status: lifecycle.StatusRejected}, "rejected"},
		{lifecycle.WF2Des, "status", store.Filter{Status: lifecycle.StatusCancelled}, "cancelled"},
		{lifecycle.WF2Des, "phase", store.Filter{Phase: lifecycle.PhaseParse}, "parsing, other file, other screen, other edge"},
		{lifecycle.WF2Des, "phase", store.Filter{Phase: lifecycle.PhaseAwaitingConfirm}, "awaiting_confirm"},
		{lifecycle.WF2Des, "phase", store.Filter{Phase: lifecycle.PhaseAssemble}, "assembling"},
		{lifecycle.WF2Des, "edge", store.Filter{Edge: lifecycle.EdgeDes2WF}, "other edge"},
		{lifecycle.WF2Des, "screen", store.Filter{ScreenID: "other screen"}, "other screen"},
		{lifecycle.WF2Des, "unplaced", store.Filter{Materialized: new(false)}, "completed, unflagged"},
		{lifecycle.WF2Des, "placed", store.Filter{Materialized: new(true)}, "placed"},
		{lifecycle.WF2Des, "flagged", store.Filter{Flagged: new(true)}, "completed, placed"},
		{lifecycle.WF2Des, "unflagged", store.Filter{Flagged: new(false), Status: lifecycle.StatusCompleted}, "unflagged"},
		{lifecycle.WF2Des, "two at once", store.Filter{Status: lifecycle.StatusProcessing, ScreenID: "other screen"}, "other screen"},
		{lifecycle.WF2Des, "all at once", store.Filter{FigmaFileKey: "file", Status: lifecycle.StatusProcessing, Phase: lifecycle.PhaseParse,
			Edge: lifecycle.EdgeDes2WF, ScreenID: "screen", Flagged: new(false), CreatedAfter: time.Unix(0, 0), CreatedBefore: time.Now().Add(time.Hour)}, "other edge"},
		{lifecycle.WF2Des, "what nobody has", store.Filter{FigmaFileKey: `' OR true --`}, ""},
		{lifecycle.Code2WF, "nothing", store.Filter{}, "processing, completed, failed, placed, other file, other screen, unflagged"},
		{lifecycle.Code2WF, "file", store.Filter{FigmaFileKey: "other file"}, "other file"},
		{lifecycle.Code2WF, "screen", store.Filter{ScreenID: "other screen"}, "other screen"},
		{lifecycle.Code2WF, "status", store.Filter{Status: lifecycle.StatusFailed}, "failed"},
		{lifecycle.Code2WF, "unplaced", store.Filter{Materialized: new(false)}, "completed, unflagged"},
		{lifecycle.Code2WF, "flagged", store.Filter{Flagged: new(true)}, "completed, placed"},
	} {
		want := []lifecycle.Run{} // and never nil, which would be null in JSON
		for name := range strings.SplitSeq(c.want, ",") {
			if run, ok := galleries[c.kind][strings.TrimSpace(name)]; ok {
				want = append(want, run)
			}
		}
		slices.SortFunc(want, newestFirst)
		got, err := w.List(t.Context(), c.kind, tenant, c.filter, store.Position{}, 100)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s by %s: %v (-want +got):\n%s", c.kind, c.about, err, diff)
		}
	}
}

func newestFirst(a, b lifecycle.Run) int {
	if c := b.CreatedAt.Compare(a.CreatedAt); c != 0 {
		return c
	}
	return strings.Compare(b.ID, a.ID)
}

// Catches bounds that take in the run at the bound itself, or look at another time than the creation.
func TestListByTime(t *testing.T) {
	t.Parallel()
	w := open(t)
	var runs []lifecycle.Run
	for range 5 {
		runs = append(runs, w.in(t, lifecycle.Cancelled, w.creation(lifecycle.WF2Des)))
	}
	got, err := w.List(t.Context(), lifecycle.WF2Des, tenant,
		store.Filter{CreatedAfter: runs[0].CreatedAt, CreatedBefore: runs[3].CreatedAt}, store.Position{}, 100)
	if diff := cmp.Diff([]lifecycle.Run{runs[2], runs[1]}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// manyRuns stores n open runs behind the store's back; threes of them are created in the same microsecond.
func (w *world) manyRuns(t *testing.T, n int) []string {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = uuid.NewV7().String()
		w.exec(t, `INSERT INTO wf2des (id, organization_id, project_id, figma_file_key, wf_node_id, screen_id, trigger_surface, phase, created_at, created_by, updated_by)
			VALUES ($1, 1, 1, 'file', $2, 'screen', '1', '0', TIMESTAMPTZ '2026-11-01' + $3 * interval '1 microsecond', 'user-plugin', 'user-plugin')`,
			ids[i], fmt.Sprintf("7:%d", i), i/3)
	}
	slices.Reverse(ids) // ids of one microsecond rise, and the newest come first
	return ids
}

// Catches a page boundary that falls among runs of one instant, or a list that shifts while its runs move on and new ones come.
func TestPagesLoseAndDoubleNothingWhileRunsMove(t *testing.T) {
	t.Parallel()
	w := open(t)
	ids := w.manyRuns(t, 200)
	stop := make(chan struct{})
	var busy errgroup.Group
	busy.Go(func() error { // ends them all, in an order of its own, and makes new ones
		for i := range ids {
			select {
			case <-stop:
				return nil
			default:
			}
			run := lifecycle.Run{Ref: lifecycle.Ref{Kind: lifecycle.WF2Des, ID: ids[i*77%200]}, Attempt: 1}
			if _, err := w.Apply(t.Context(), command(lifecycle.Cancel, run)); err != nil {
				return err
			}
			if _, err := w.Create(t.Context(), w.creation(lifecycle.WF2Des)); err != nil {
				return err
			}
		}
		return nil
	})
	for _, limit := range []int{1, 7, 100} {
		var seen []string
		var after store.Position
		for {
			page, err := w.List(t.Context(), lifecycle.WF2Des, tenant, store.Filter{CreatedBefore: time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)}, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 || len(seen) > len(ids) {
				break
			}
			for _, run := range page {
				seen = append(seen, run.ID)
			}
			after = store.Position{CreatedAt: page[len(page)-1].CreatedAt, ID: page[len(page)-1].ID}
		}
		if diff := cmp.Diff(ids, seen); diff != "" {
			t.Errorf("in pages of %d (-want +got):\n%s", limit, diff)
		}
	}
	close(stop)
	if err := busy.Wait(); err != nil {
		t.Error(err)
	}
}

// Catches a list that shows one tenant's runs to another.
func TestListKeepsTenantsApart(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, kind := range lifecycle.Kinds {
		w.create(t, w.creation(kind))
		for _, other := range []lifecycle.Tenant{
			{OrganizationID: platform.OrganizationID, ProjectID: platform.OtherProjectID},
			{OrganizationID: platform.OtherOrganizationID, ProjectID: platform.ProjectID},
			{OrganizationID: platform.OtherOrganizationID, ProjectID: platform.OtherOrganizationProjectID},
		} {
			if got, err := w.List(t.Context(), kind, other, store.Filter{}, store.Position{}, 100); err != nil || len(got) > 0 {
				t.Errorf("%v is shown %v, %v", other, got, err)
			}
		}
	}
}

// Of both kinds, those that are there are read, of whatever tenant, and the rest is left out in silence. Catches a column that one reader
// forgets, a deleted run that is shown, an id that spoils the others, and versions that are not the runs' own.
func TestRunsAndTheirVersions(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, kind := range lifecycle.Kinds {
		runs := w.gallery(t, kind)
		ids := []string{uuid.NewV7().String(), "", "no id at all", runs["deleted"].ID}
		want, versions := []lifecycle.Run{}, map[string]time.Time{}
		for name, run := range runs {
			ids = append(ids, run.ID, run.ID) // asked for twice, and read once
			if name != "deleted" {
				want, versions[run.ID] = append(want, run), run.UpdatedAt
			}
		}
		slices.SortFunc(want, newestFirst)
		got, err := w.Runs(t.Context(), kind, ids)
		slices.SortFunc(got, newestFirst)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("runs of %s: %v (-want +got):\n%s", kind, err, diff)
		}
		read, err := w.Versions(t.Context(), kind, ids)
		if diff := cmp.Diff(versions, read); diff != "" || err != nil {
			t.Errorf("versions of %s: %v (-want +got):\n%s", kind, err, diff)
		}
		for _, nothing := range [][]string{nil, {}, {uuid.NewV7().String()}} {
			got, err := w.Runs(t.Context(), kind, nothing)
			read, err2 := w.Versions(t.Context(), kind, nothing)
			if len(got) > 0 || len(read) > 0 || err != nil || err2 != nil {
				t.Errorf("of %q are read %v, %v, and %v, %v", nothing, got, err, read, err2)
			}
		}
	}
}

// Catches ids of one kind that are looked for among the other's, and a reader who goes on when nobody waits any more.
func TestRunsOfTheOtherKindAreNotThere(t *testing.T) {
	t.Parallel()
	w := open(t)
	run := w.create(t, w.creation(lifecycle.WF2Des))
	if got, err := w.Runs(t.Context(), lifecycle.Code2WF, []string{run.ID}); len(got) > 0 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := w.Versions(t.Context(), lifecycle.Code2WF, []string{run.ID}); len(got) > 0 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Runs(over, lifecycle.WF2Des, []string{run.ID}); !errors.Is(err, context.Canceled) {
		t.Errorf("Runs: %v", err)
	}
	if _, err := w.Versions(over, lifecycle.WF2Des, []string{run.ID}); !errors.Is(err, context.Canceled) {
		t.Errorf("Versions: %v", err)
	}
}

// Catches a timeline in another order, with another run's lines, or one kind's shown for the other.
func TestTimeline(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.creation(lifecycle.WF2Des)
	run := w.in(t, lifecycle.AwaitingConfirm, c)
	w.in(t, lifecycle.Completed, w.creation(lifecycle.WF2Des))
	w.apply(t, command(lifecycle.Parsed, run))
	run = w.apply(t, command(lifecycle.Confirm, run)).Run
	run = w.apply(t, command(lifecycle.Complete, run)).Run

	var story []string
	for _, e := range w.timeline(t, run.Ref) {
		story = append(story, fmt.Sprintf("%d %s %s by %s: %s → %s", e.Seq, e.What, e.Outcome, e.By.Voice, e.From, e.To))
	}
	want := []string{
		"1 created applied by user:  → parsing",
		"2 parsed applied by worker: parsing → awaiting_confirm",
		"3 parsed duplicate by worker: awaiting_confirm → awaiting_confirm",
		"4 confirmed applied by user: awaiting_confirm → assembling",
		"5 completed applied by worker: assembling → completed",
	}
	if diff := cmp.Diff(want, story); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if other := w.timeline(t, lifecycle.Ref{Kind: lifecycle.Code2WF, ID: run.ID}); len(other) > 0 {
		t.Errorf("another kind's timeline holds %v", other)
	}
}

// Catches an answer about users and projects that is always yes, or that forgets whose project it is.
func TestLookUps(t *testing.T) {
	t.Parallel()
	w := open(t)
	for subject, want := range map[string]bool{platform.UserPlugin: true, "a stranger": false, "": false} {
		if got, err := w.KnowsUser(t.Context(), subject); got != want || err != nil {
			t.Errorf("KnowsUser(%q) = %t, %v", subject, got, err)
		}
	}
	for asked, want := range map[lifecycle.Tenant]bool{
		tenant: true,
		{OrganizationID: platform.OrganizationID, ProjectID: platform.OtherOrganizationProjectID}: false,
		{OrganizationID: platform.OrganizationID, ProjectID: 99}:                                  false,
	} {
		if got, err := w.HasProject(t.Context(), asked); got != want || err != nil {
			t.Errorf("HasProject(%v) = %t, %v", asked, got, err)
		}
	}
}
