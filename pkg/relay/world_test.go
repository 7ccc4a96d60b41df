package relay

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"uuid"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"framerun.dev/pkg/store/storetest"
	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// world is a store on a database of its own, and a second way into that database.
type world struct {
	*store.Store
	sql *sqlx.DB
	url string
}

func open(t *testing.T) *world {
	t.Helper()
	w := &world{url: storetest.New(t)}
	var err error
	if w.Store, err = store.Open(w.url, store.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Store.Close() })
	if w.sql, err = sqlx.Open("postgres", w.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.sql.Close() })
	return w
}

var (
	tenant   = lifecycle.Tenant{OrganizationID: platform.OrganizationID, ProjectID: platform.ProjectID}
	designer = lifecycle.Actor{Voice: lifecycle.User, Name: platform.UserPlugin}
)

// create stores n runs, each with one job and one event, and names them in their order.
func (w *world) create(t *testing.T, n int) []string {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		c := creation()
		if _, err := w.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		ids[i] = c.Run.ID
	}
	return ids
}

func creation() store.Creation {
	return store.Creation{By: designer, Run: lifecycle.Run{
		Ref: lifecycle.Ref{Kind: lifecycle.Code2WF, ID: uuid.NewV7().String()}, Tenant: tenant, FigmaFileKey: "file", ScreenID: "screen",
		PageImportID: platform.PageImportID,
	}}
}

// entry is a row of the outbox.
type entry struct {
	ID        int64   `db:"id"`
	RunID     string  `db:"run_id"`
	State     string  `db:"state"`
	Tries     int     `db:"tries"`
	LastError *string `db:"last_error"`
	Wait      float64 `db:"wait"` // seconds until it is due
}

func (w *world) outbox(t *testing.T, destination string) []entry {
	t.Helper()
	var entries []entry
	err := w.sql.Select(&entries, `SELECT id, run_id, state, tries, last_error, extract(epoch FROM due_at - clock_timestamp())::float8 AS wait
FROM outbox WHERE destination = $1 ORDER BY id`, destination)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// endLeases lets time pass.
func (w *world) endLeases(t *testing.T) {
	t.Helper()
	if _, err := w.sql.Exec(`UPDATE outbox SET due_at = now() WHERE state = 'pending'`); err != nil {
		t.Fatal(err)
	}
}

// sender is a destination that a test plays.
type sender[T any] func(ctx context.Context, loads []T) []error

func (s sender[T]) Send(ctx context.Context, loads []T) []error { return s(ctx, loads) }

// basket is a destination that takes everything and remembers it.
type basket struct {
	mu   sync.Mutex
	took []string // run ids, in their order
}

func (b *basket) take(jobs []lifecycle.Job) []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, j := range jobs {
		b.took = append(b.took, j.Run.ID)
	}
	return make([]error, len(jobs))
}

func (b *basket) Send(_ context.Context, jobs []lifecycle.Job) []error { return b.take(jobs) }

func (b *basket) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.took...)
}

// must says that it took just these, in their order.
func (b *basket) must(t *testing.T, ids []string) {
	t.Helper()
	if diff := cmp.Diff(ids, b.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func (w *world) jobs(s Sender[lifecycle.Job]) Lane[lifecycle.Job] {
	return Lane[lifecycle.Job]{Name: "jobs", Claim: w.ClaimJobs("code2wf"), Sender: s, Store: w.Store, Log: slog.New(slog.DiscardHandler)}
}

func (w *world) events(s Sender[lifecycle.Announcement]) Lane[lifecycle.Announcement] {
	return Lane[lifecycle.Announcement]{Name: "events", Claim: w.ClaimEvents, Sender: s, Store: w.Store, Log: slog.New(slog.DiscardHandler)}
}

// round claims, sends and settles one batch, and counts what arrived.
func (l Lane[T]) round(ctx context.Context) (arrived int) {
	l.Most = Batch
	return l.carry(ctx, l.claim(ctx))
}

// run lets a lane carry until the test ends it, or is over. The lane must then end by itself.
func run(t *testing.T, lane interface{ Run(context.Context) error }) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var stopped atomic.Bool
	go func() {
		defer close(done)
		if err := lane.Run(ctx); err != nil {
			t.Errorf("the lane ended with %v", err)
		}
	}()
	stop = func() {
		cancel()
		select {
		case <-done:
		case <-time.After(15 * time.Second):
			if !stopped.Swap(true) {
				t.Error("the lane does not end")
			}
		}
	}
	t.Cleanup(stop)
	return stop
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func count(entries []entry) string {
	by := map[string]int{}
	for _, e := range entries {
		by[e.State]++
	}
	return fmt.Sprint(by)
}
