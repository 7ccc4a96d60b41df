package store_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"uuid"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/lifecycle/lifecycletest"
	"framerun.dev/pkg/store"
	"framerun.dev/pkg/store/storetest"
	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// world is a store on a database of its own, and a second way into that database for looking behind the store's back.
type world struct {
	*store.Store
	sql   *sqlx.DB
	url   string
	nodes atomic.Int64
}

func open(t *testing.T) *world {
	t.Helper()
	return openWith(t, store.Options{Alone: storetest.Alone()})
}

// openTogether is open for tests of what commands do to each other in one batch.
func openTogether(t *testing.T) *world {
	t.Helper()
	return openWith(t, store.Options{})
}

func openWith(t *testing.T, o store.Options) *world {
	t.Helper()
	url := storetest.New(t)
	return &world{Store: openStore(t, url, o), sql: sqlx.NewDb(connect(t, url).DB, "postgres"), url: url}
}

func openStore(t *testing.T, url string, o store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func connect(t *testing.T, url string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

var (
	tenant   = lifecycle.Tenant{OrganizationID: platform.OrganizationID, ProjectID: platform.ProjectID}
	designer = lifecycle.Actor{Voice: lifecycle.User, Name: platform.UserPlugin}
	worker   = lifecycle.Actor{Voice: lifecycle.Worker, Name: platform.UserWorker}
)

// creation asks for a run of a node that no other creation of this world names.
func (w *world) creation(kind lifecycle.Kind) store.Creation {
	run := lifecycle.Run{
		Ref: lifecycle.Ref{Kind: kind, ID: uuid.NewV7().String()}, Tenant: tenant, FigmaFileKey: "file", ScreenID: "screen",
	}
	if kind == lifecycle.Code2WF {
		run.PageImportID = platform.PageImportID
	} else {
		run.WFNodeID, run.Edge, run.TriggerSurface = fmt.Sprintf("1:%d", w.nodes.Add(1)), lifecycle.EdgeWF2Des, lifecycle.Plugin
	}
	return store.Creation{Run: run, By: designer, Traceparent: "00-creation"}
}

func (w *world) create(t *testing.T, c store.Creation) lifecycle.Run {
	t.Helper()
	run, err := w.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// command is verb about run as it is, with everything that any verb could need.
func command(verb lifecycle.Verb, run lifecycle.Run) lifecycle.Command {
	cmd := lifecycle.Command{
		Verb: verb, Run: run.Ref, Tenant: &tenant, By: designer, Attempt: run.Attempt,
		Result: lifecycle.Result{
			Key: new("runs/" + run.ID + "/spec.json"), FlagCount: new(2), Score: new(lifecycle.Score(8125)), ScoreVersion: new("ds@1.0"),
		},
		Message: "The page could not be read.", Feedback: lifecycle.Adopted, Traceparent: "00-" + string(verb),
	}
	switch verb {
	case lifecycle.Parsed, lifecycle.Complete, lifecycle.Fail, lifecycle.Requeue:
		cmd.Tenant, cmd.By = nil, worker
	}
	return cmd
}

func (w *world) apply(t *testing.T, cmd lifecycle.Command) store.Applied {
	t.Helper()
	got, err := w.Apply(t.Context(), cmd)
	if err != nil {
		t.Fatalf("%s: %v", cmd.Verb, err)
	}
	return got
}

// waysTo are the verbs that lead from the creation to each state.
var waysTo = map[lifecycle.State][]lifecycle.Verb{
	lifecycle.Parsing:         {},
	lifecycle.Processing:      {},
	lifecycle.AwaitingConfirm: {lifecycle.Parsed},
	lifecycle.Assembling:      {lifecycle.Parsed, lifecycle.Confirm},
	lifecycle.Completed:       {lifecycle.Parsed, lifecycle.Confirm, lifecycle.Complete},
	lifecycle.Failed:          {lifecycle.Fail},
	lifecycle.Rejected:        {lifecycle.Parsed, lifecycle.Reject},
	lifecycle.Cancelled:       {lifecycle.Cancel},
}

// in creates a run as c asks and leads it to state.
func (w *world) in(t *testing.T, state lifecycle.State, c store.Creation) lifecycle.Run {
	t.Helper()
	run := w.create(t, c)
	for _, verb := range waysTo[state] {
		skipped := verb == lifecycle.Confirm && run.AutoConfirm || verb != lifecycle.Complete && run.Kind == lifecycle.Code2WF && state == lifecycle.Completed
		if !skipped {
			run = w.apply(t, command(verb, run)).Run
		}
	}
	if run.State != state {
		t.Fatalf("the run is %s, want %s", run.State, state)
	}
	return run
}

// read is the row as it stands.
func (w *world) read(t *testing.T, ref lifecycle.Ref) lifecycle.Run {
	t.Helper()
	run, err := w.RunOfAnyTenant(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func (w *world) timeline(t *testing.T, ref lifecycle.Ref) []lifecycle.Event {
	t.Helper()
	events, err := w.Timeline(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// mustReplay fails unless the run's timeline has no gap and tells exactly the row.
func (w *world) mustReplay(t *testing.T, given lifecycle.Run) {
	t.Helper()
	replayed, err := lifecycletest.Replay(given, w.timeline(t, given.Ref))
	if diff := cmp.Diff(w.read(t, given.Ref), replayed); diff != "" || err != nil {
		t.Errorf("the timeline does not replay to the row: %v (-row +replayed):\n%s", err, diff)
	}
}

// exec changes the database behind the store's back.
func (w *world) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := w.sql.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// value reads one value behind the store's back.
func value[T any](t *testing.T, w *world, query string, args ...any) T {
	t.Helper()
	var v T
	if err := w.sql.GetContext(t.Context(), &v, query, args...); err != nil {
		t.Fatal(err)
	}
	return v
}

// table is everything that a table holds, as one text.
func (w *world) table(t *testing.T, name string) string {
	t.Helper()
	return value[string](t, w, `SELECT coalesce(string_agg(r::text, E'\n' ORDER BY r::text), '') FROM `+name+` r`)
}

// tables is everything that the suite has stored, as one text.
func (w *world) tables(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, name := range []string{"wf2des", "code2wf", "run_event", "outbox", "idempotency_key", "run_pulse"} {
		fmt.Fprintf(&all, "%s\n%s\n", name, w.table(t, name))
	}
	return all.String()
}

// unchanged fails if do changes anything that is stored.
func (w *world) unchanged(t *testing.T, about string, do func()) {
	t.Helper()
	before := w.tables(t)
	do()
	if diff := cmp.Diff(before, w.tables(t)); diff != "" {
		t.Errorf("%s changed what is stored:\n%s", about, diff)
	}
}
