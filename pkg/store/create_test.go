package store_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"uuid"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

// columns reads one row of a table, column by column.
func (w *world) columns(t *testing.T, query string, args ...any) []map[string]any {
	t.Helper()
	rows, err := w.sql.QueryxContext(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []map[string]any
	for rows.Next() {
		r := map[string]any{}
		if err := rows.MapScan(r); err != nil {
			t.Fatal(err)
		}
		for name, v := range r {
			switch v := v.(type) {
			case []byte:
				r[name] = string(v)
			case time.Time:
				r[name] = v.UTC()
			}
		}
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// Catches a column that gets another one's value, a default where a value was given, a time that is not PostgreSQL's one time, and a
// row that is stored without its timeline, its job or its announcement.
func TestCreateWF2DesStoresWhatWasGiven(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.creation(lifecycle.WF2Des)
	c.Run.FigmaFileKey, c.Run.WFNodeID, c.Run.ScreenID, c.Run.Edge = "the file", "I5:6;7:8", "the screen", lifecycle.EdgeDes2WF
	c.Run.Prompt, c.Run.PlacementTarget = new("the prompt"), new("9:9")
	c.Run.AutoConfirm, c.Run.TriggerSurface = true, lifecycle.API
	run := w.create(t, c)

	row := map[string]any{
		"id": c.Run.ID, "organization_id": int64(1), "project_id": int64(1), "figma_file_key": "the file", "wf_node_id": "I5:6;7:8",
		"screen_id": "the screen", "prompt": "the prompt", "placement_target": "9:9", "auto_confirm": "1", "trigger_surface": "0",
		"status": "0", "phase": "0", "attempt": int64(1), "error_message": nil, "result_url": nil, "flag_count": nil,
		"materialized_at": nil, "feedback_status": nil, "created_at": run.CreatedAt, "updated_at": run.CreatedAt, "deleted_at": nil,
		"created_by": "user-plugin", "updated_by": "user-plugin", "deleted_by": nil, "edge": "1", "score": nil, "score_version": nil,
	}
	if diff := cmp.Diff([]map[string]any{row}, w.columns(t, `SELECT * FROM wf2des`)); diff != "" {
		t.Errorf("wf2des (-want +got):\n%s", diff)
	}
	w.mustHaveBeginnings(t, run, "parsing", "parse")
}

func TestCreateCode2WFStoresWhatWasGiven(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.creation(lifecycle.Code2WF)
	c.Run.FigmaFileKey, c.Run.ScreenID, c.Run.PlacementTarget = "the file", "the screen", new("9:9")
	run := w.create(t, c)

	row := map[string]any{
		"id": c.Run.ID, "organization_id": int64(1), "project_id": int64(1), "page_import_id": platform.PageImportID,
		"figma_file_key": "the file", "screen_id": "the screen", "placement_target": "9:9", "status": "0", "attempt": int64(1),
		"flag_count": nil, "result_url": nil, "error_message": nil, "materialized_at": nil, "created_at": run.CreatedAt,
		"updated_at": run.CreatedAt, "deleted_at": nil, "created_by": "user-plugin", "updated_by": "user-plugin", "deleted_by": nil,
	}
	if diff := cmp.Diff([]map[string]any{row}, w.columns(t, `SELECT * FROM code2wf`)); diff != "" {
		t.Errorf("code2wf (-want +got):\n%s", diff)
	}
	w.mustHaveBeginnings(t, run, "processing", "generate")
}

// mustHaveBeginnings looks at what must stand beside the only row there is: one line, one job, one announcement.
func (w *world) mustHaveBeginnings(t *testing.T, run lifecycle.Run, state, stage string) {
	t.Helper()
	if diff := cmp.Diff(run, w.read(t, run.Ref)); diff != "" {
		t.Errorf("what Create returned is not what was stored (-returned +stored):\n%s", diff)
	}
	line := map[string]any{
		"kind": string(run.Kind), "run_id": run.ID, "seq": int64(1), "what": "created", "outcome": "applied", "actor_kind": "user",
		"actor": "user-plugin", "from_state": nil, "to_state": state, "attempt": int64(1), "version": run.CreatedAt, "at": run.CreatedAt,
		"data": "{}", "traceparent": "00-creation",
	}
	if diff := cmp.Diff([]map[string]any{line}, w.columns(t, `SELECT * FROM run_event`)); diff != "" {
		t.Errorf("run_event (-want +got):\n%s", diff)
	}
	entry := func(destination string, stage, seq any) map[string]any {
		return map[string]any{
			"destination": destination, "kind": string(run.Kind), "run_id": run.ID, "attempt": int64(1), "stage": stage, "seq": seq,
			"traceparent": "00-creation", "state": "pending", "tries": int64(0), "last_error": nil, "settled_at": nil,
		}
	}
	want := []map[string]any{entry("events", nil, int64(1)), entry("jobs", stage, nil)}
	got := w.columns(t, `SELECT destination, kind, run_id, attempt, stage, seq, traceparent, state, tries, last_error, settled_at
		FROM outbox ORDER BY destination`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outbox (-want +got):\n%s", diff)
	}
	if late := value[int](t, w, `SELECT count(*) FROM outbox WHERE due_at > clock_timestamp()`); late > 0 {
		t.Errorf("%d entries are not due at once", late)
	}
}

// oddities are texts that Figma really has, or that Unicode allows: all but NUL must come back as they went in.
var oddities = []string{
	"\b\x01\x1f\x7f", "\u0085", "line\u2028paragraph\u2029", "\uffff\ufffe\ufdd0", "👩‍👩‍👧 🇯🇵", " leading and trailing ", " ", "\t\r\n",
	"e\u0301 is not \u00e9", "ワイヤーフレーム", "\ufeffBOM", "\U0010ffff", `\u0000 "quoted" 'too' \`, "%s $1 {} <&>", "\u202eright to left",
}

// Catches a text that is trimmed, escaped, normalised or cut on its way in or out, by table or by timeline.
func TestTextsComeBackExactly(t *testing.T) {
	t.Parallel()
	w := open(t)
	limit := strings.Repeat("👩", 254) + " " // 255 code points, 1017 bytes, the last of them a space
	for _, s := range append(oddities, limit) {
		c := w.creation(lifecycle.WF2Des)
		c.Run.FigmaFileKey, c.Run.WFNodeID, c.Run.ScreenID = s, s, s
		c.Run.PlacementTarget, c.Run.Prompt = &s, new(strings.Repeat(s, 8000/255))
		run := w.in(t, lifecycle.AwaitingConfirm, c)
		if diff := cmp.Diff([]any{s, s, s, &s, c.Run.Prompt}, []any{run.FigmaFileKey, run.WFNodeID, run.ScreenID, run.PlacementTarget, run.Prompt}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", s, diff)
		}
		fail := command(lifecycle.Fail, run)
		fail.Message, fail.Result.Key = s, new(s+" ")
		w.apply(t, fail)
		w.mustReplay(t, c.Run)
		if got := w.read(t, run.Ref); *got.ErrorMessage != s || *got.ResultURL != s+" " {
			t.Errorf("%q came back as %q and %q", s, *got.ErrorMessage, *got.ResultURL)
		}

		c = w.creation(lifecycle.Code2WF)
		c.Run.FigmaFileKey, c.Run.ScreenID, c.Run.PlacementTarget = s, s, &s
		w.create(t, c)
		w.mustReplay(t, c.Run)
	}
}

// Catches a creation that another organization's project, a stranger or a wrong page import gets through, and one that leaves a trace
// although it was turned down.
func TestCreateTurnsDown(t *testing.T) {
	t.Parallel()
	w := open(t)
	from := func(id string) func(*store.Creation) {
		return func(c *store.Creation) { c.Run.PageImportID = id }
	}
	in := func(organization, project int64) func(*store.Creation) {
		return func(c *store.Creation) {
			c.Run.Tenant = lifecycle.Tenant{OrganizationID: organization, ProjectID: project}
		}
	}
	for _, c := range []struct {
		about  string
		kinds  []lifecycle.Kind
		change func(*store.Creation)
		want   string
	}{
		{"a stranger", lifecycle.Kinds, func(c *store.Creation) { c.By.Name = "a stranger" }, "the platform does not know this user"},
		{"no such project", lifecycle.Kinds, in(platform.OrganizationID, 99), "no such run"},
		{"no such organization", lifecycle.Kinds, in(99, platform.ProjectID), "no such run"},
		{"another organization's project", lifecycle.Kinds, in(platform.OrganizationID, platform.OtherOrganizationProjectID), "no such run"},
		{"an unfinished page import", lifecycle.Kinds[1:], from(platform.UnfinishedPageImportID), "/pageImportId"},
		{"a deleted page import", lifecycle.Kinds[1:], from(platform.DeletedPageImportID), "/pageImportId"},
		{"another project's page import", lifecycle.Kinds[1:], from(platform.OtherProjectPageImportID), "/pageImportId"},
		{"another organization's page import", lifecycle.Kinds[1:], from(platform.OtherOrganizationPageImportID), "/pageImportId"},
		{"no such page import", lifecycle.Kinds[1:], from("nowhere"), "/pageImportId"},
	} {
		for _, kind := range c.kinds {
			asked := w.creation(kind)
			c.change(&asked)
			w.unchanged(t, c.about, func() {
				if _, err := w.Create(t.Context(), asked); turnedDown(err) != c.want {
					t.Errorf("%s, %s: %v, want %s", kind, c.about, err, c.want)
				}
			})
		}
	}
}

func turnedDown(err error) string {
	if invalid, ok := errors.AsType[*lifecycle.InvalidError](err); ok {
		return invalid.Field
	}
	for _, known := range []error{lifecycle.ErrNotFound, lifecycle.ErrUnknownUser, lifecycle.ErrUnavailable, lifecycle.ErrOutcomeUnknown} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "something else"
}

// Catches an open-run key with a column too few (the other edge, project, file or node would block) or too many (the same node would
// not), and a conflict that does not carry the run that stands there.
func TestOpenRunBlocksItsNodeAlone(t *testing.T) {
	t.Parallel()
	w := open(t)
	first := w.creation(lifecycle.WF2Des)
	standing := w.in(t, lifecycle.AwaitingConfirm, first)
	again := func(change func(*lifecycle.Run)) store.Creation {
		c := first
		c.Run.ID, c.Run.ScreenID = uuid.NewV7().String(), "another screen"
		change(&c.Run)
		return c
	}
	for about, change := range map[string]func(*lifecycle.Run){
		"the same":                 func(r *lifecycle.Run) {},
		"another surface":          func(r *lifecycle.Run) { r.TriggerSurface = lifecycle.API },
		"with auto-confirm":        func(r *lifecycle.Run) { r.AutoConfirm = true },
		"another prompt and place": func(r *lifecycle.Run) { r.Prompt, r.PlacementTarget = new("p"), new("8:8") },
	} {
		w.unchanged(t, about, func() {
			_, err := w.Create(t.Context(), again(change))
			open, ok := errors.AsType[*lifecycle.OpenRunError](err)
			if !ok {
				t.Fatalf("%s: %v, want an OpenRunError", about, err)
			}
			if diff := cmp.Diff(standing, open.Existing); diff != "" {
				t.Errorf("%s: the run in the way (-want +got):\n%s", about, diff)
			}
		})
	}
	for about, change := range map[string]func(*lifecycle.Run){
		"the other edge":  func(r *lifecycle.Run) { r.Edge = lifecycle.EdgeDes2WF },
		"another project": func(r *lifecycle.Run) { r.ProjectID = platform.OtherProjectID },
		"another file":    func(r *lifecycle.Run) { r.FigmaFileKey = "another file" },
		"a sublayer":      func(r *lifecycle.Run) { r.WFNodeID = "I" + r.WFNodeID + ";1:1" },
	} {
		if _, err := w.Create(t.Context(), again(change)); err != nil {
			t.Errorf("%s: %v", about, err)
		}
	}
}

// Catches a run that blocks its node after its end, whatever the end.
func TestEndedRunFreesItsNode(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.creation(lifecycle.WF2Des)
	for _, end := range []lifecycle.State{lifecycle.Completed, lifecycle.Failed, lifecycle.Rejected, lifecycle.Cancelled} {
		c.Run.ID = uuid.NewV7().String()
		w.in(t, end, c)
	}
	c.Run.ID = uuid.NewV7().String()
	w.create(t, c)
}

// Catches a dedupe where there is none: every POST of code2wf is a run of its own (seed).
func TestCode2WFHasNoDedupe(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.creation(lifecycle.Code2WF)
	for range 5 {
		c.Run.ID = uuid.NewV7().String()
		w.create(t, c)
	}
}

// Catches two open runs for one node, a conflict without an id, and any other answer when many ask at once.
func TestManyCreateForOneNode(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.creation(lifecycle.WF2Des)
	var created atomic.Pointer[lifecycle.Run]
	var told [50]string
	var all errgroup.Group
	for i := range told {
		all.Go(func() error {
			mine := c
			mine.Run.ID = uuid.NewV7().String()
			run, err := w.Create(t.Context(), mine)
			open, inTheWay := errors.AsType[*lifecycle.OpenRunError](err)
			switch {
			case inTheWay:
				told[i] = open.Existing.ID
			case err != nil:
				return err
			case !created.CompareAndSwap(nil, &run):
				t.Errorf("%s and %s were both created", created.Load().ID, run.ID)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil || created.Load() == nil {
		t.Fatalf("created %v, error %v", created.Load(), err)
	}
	told[slices.Index(told[:], "")] = created.Load().ID
	for _, id := range told {
		if id != created.Load().ID {
			t.Errorf("one was told of run %q, but %q is the one", id, created.Load().ID)
		}
	}
	if lines := value[int](t, w, `SELECT count(*) FROM run_event`); lines != 1 {
		t.Errorf("%d timeline lines for one run", lines)
	}
}

// Catches the gap between "somebody is in the way" and "who?": the run in the way may end in between. The answer must still be a new run
// or the id of one that was open.
func TestCreateWhileTheStandingRunEnds(t *testing.T) {
	t.Parallel()
	w := open(t)
	const creators, rounds = 6, 400
	asked := w.creation(lifecycle.WF2Des)
	var conflicts atomic.Int64
	var all errgroup.Group
	for range creators {
		all.Go(func() error {
			for range rounds {
				c := asked
				c.Run.ID = uuid.NewV7().String()
				run, err := w.Create(t.Context(), c)
				if open, ok := errors.AsType[*lifecycle.OpenRunError](err); ok {
					conflicts.Add(1)
					run = open.Existing
					if run.Ended() || run.ID == c.Run.ID {
						t.Errorf("told of run %s, which is %s", run.ID, run.State)
					}
				} else if err != nil {
					return err
				}
				if _, err := w.Apply(t.Context(), command(lifecycle.Cancel, run)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	if conflicts.Load() < rounds/4 {
		t.Errorf("only %d creations met a standing run: nothing was proved", conflicts.Load())
	}
	if left := value[int](t, w, `SELECT count(*) FROM wf2des WHERE status = '0'`); left != 0 {
		t.Errorf("%d runs are still open although each was cancelled", left)
	}
}

// Catches a retry with the same id that is told of a conflict with itself, or gets an error, because its first try had arrived: while the
// run is open, when it has moved on and when it has ended.
func TestCreateAgainReturnsTheRun(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, kind := range lifecycle.Kinds {
		for _, state := range statesOf[kind] {
			c := w.creation(kind)
			run := w.in(t, state, c)
			w.unchanged(t, "a repeated creation", func() {
				again, err := w.Create(t.Context(), c)
				if diff := cmp.Diff(run, again); diff != "" || err != nil {
					t.Errorf("%s that is %s: %v (-run +again):\n%s", kind, state, err, diff)
				}
			})
		}
	}
}
