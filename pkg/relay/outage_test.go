package relay

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"framerun.dev/pkg/lifecycle"
	"github.com/jmoiron/sqlx"
)

// outage makes w's database unreachable until back is called.
func (w *world) outage(t *testing.T, admin *sqlx.DB) (back func()) {
	t.Helper()
	u, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	admin.MustExec(`ALTER DATABASE "` + name + `" ALLOW_CONNECTIONS false`)
	admin.MustExec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1`, name)
	back = sync.OnceFunc(func() { admin.MustExec(`ALTER DATABASE "` + name + `" ALLOW_CONNECTIONS true`) })
	t.Cleanup(back)
	return back
}

// admin is a way to the server that does not lead through w's database.
func (w *world) admin(t *testing.T) *sqlx.DB {
	t.Helper()
	u, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/postgres"
	db, err := sqlx.Open("postgres", u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// complaints counts the warnings whose text holds a word.
type complaints struct {
	slog.Handler
	word string
	n    *atomic.Int64
}

func (c complaints) Enabled(context.Context, slog.Level) bool { return true }

func (c complaints) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn && strings.Contains(r.Message, c.word) {
		c.n.Add(1)
	}
	return nil
}

// Catches a lane that ends, or loses what it had in hand, because PostgreSQL was away for a moment.
func TestPostgreSQLGoneForAMoment(t *testing.T) {
	t.Parallel()
	w := open(t)
	ids := w.create(t, 3)
	admin := w.admin(t)
	var taken basket
	sending, gone := make(chan struct{}, 1), make(chan struct{})
	lane := w.jobs(sender[lifecycle.Job](func(_ context.Context, jobs []lifecycle.Job) []error {
		sending <- struct{}{}
		<-gone // the messages arrive, but that cannot be written down
		return taken.take(jobs)
	}))
	unsettled, unreadable := complaints{slog.DiscardHandler, "not writable", new(atomic.Int64)}, complaints{slog.DiscardHandler, "not readable", new(atomic.Int64)}
	lane.Log = slog.New(unsettled)
	settling := make(chan struct{})
	go func() { lane.round(t.Context()); close(settling) }()
	<-sending
	back := w.outage(t, admin)
	close(gone)
	<-settling
	if unsettled.n.Load() != 1 {
		t.Errorf("%d complaints that the outbox is not writable, want 1", unsettled.n.Load())
	}
	lane.Log = slog.New(unreadable)
	lane.Sender = &taken
	run(t, lane)
	eventually(t, "the lane notices", func() bool { return unreadable.n.Load() > 0 })
	back()
	eventually(t, "what was in hand leaves again", func() bool { return len(taken.all()) >= 6 })
	eventually(t, "the outbox is empty", func() bool { return len(w.outbox(t, "jobs")) == 0 })
	seen := map[string]bool{}
	for _, id := range taken.all() {
		seen[id] = true
	}
	for _, id := range ids {
		if !seen[id] {
			t.Errorf("job of run %s is lost", id)
		}
	}
}
