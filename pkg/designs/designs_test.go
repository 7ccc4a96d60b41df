package designs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"uuid"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/store"
	"framerun.dev/pkg/store/storetest"
	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func open(t *testing.T, url string) *Registry {
	t.Helper()
	db, err := store.Connect(url, store.Options{Pool: 4, StatementTimeout: 1500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &Registry{DB: db.DB}
}

func landing() lifecycle.Landing {
	id := uuid.NewV7().String()
	return lifecycle.Landing{
		At: time.Date(2026, 3, 4, 5, 6, 7, 891000, time.UTC), By: lifecycle.Actor{Voice: lifecycle.Worker, Name: platform.UserWorker},
		Run: lifecycle.Run{
			Ref:    lifecycle.Ref{Kind: lifecycle.WF2Des, ID: id},
			Tenant: lifecycle.Tenant{OrganizationID: platform.OrganizationID, ProjectID: platform.ProjectID}, FigmaFileKey: "file",
			ScreenID: " DB관리 ", Edge: lifecycle.EdgeWF2Des, ResultURL: new("wf2des/" + id + "/1/result.json"), CreatedBy: platform.UserPlugin,
		},
	}
}

// content is the whole registry, a line each.
func content(t *testing.T, db *sql.DB) []string {
	t.Helper()
	lines := []string{}
	err := sqlx.NewDb(db, "postgres").SelectContext(t.Context(), &lines,
		`SELECT concat_ws('|', id, organization_id, project_id, type, name, figma_file_key, wf2des_id, result_url, created_at, created_by)
			FROM design ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func line(l lifecycle.Landing) string {
	return fmt.Sprintf("%s|1|1|0| DB관리 |file|%s|%s|2026-03-04 05:06:07.000891+00|user-plugin", l.Run.ID, l.Run.ID, *l.Run.ResultURL)
}

// Catches a design that lands as somebody else's, elsewhere, without its run or result, or twice; and one that a second landing changes.
func TestLandsOnce(t *testing.T) {
	t.Parallel()
	r := open(t, storetest.New(t))
	first, second := landing(), landing()
	changed := first
	changed.At, changed.Run.ScreenID = first.At.Add(time.Hour), "another"
	for _, batch := range [][]lifecycle.Landing{{first}, {first, second}, {changed, second}} {
		for i, err := range r.Send(t.Context(), batch) {
			if err != nil {
				t.Errorf("%d of %d: %v", i, len(batch), err)
			}
		}
	}
	if diff := cmp.Diff([]string{line(first), line(second)}, content(t, r.DB)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Catches two relays that block or double each other.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	r := open(t, storetest.New(t))
	var batch, backwards []lifecycle.Landing
	var want []string
	for range 50 {
		l := landing()
		batch, backwards, want = append(batch, l), append([]lifecycle.Landing{l}, backwards...), append(want, line(l))
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for _, err := range r.Send(t.Context(), [][]lifecycle.Landing{batch, backwards}[i%2]) {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if diff := cmp.Diff(want, content(t, r.DB)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Catches a design that can never land and takes its neighbours along, or is tried for ever.
func TestWhatTheRegistryRefuses(t *testing.T) {
	t.Parallel()
	r := open(t, storetest.New(t))
	good, stranger, endless, last := landing(), landing(), landing(), landing()
	stranger.Run.ProjectID = 4711
	endless.Run.ScreenID = strings.Repeat("x", 256)
	errs := r.Send(t.Context(), []lifecycle.Landing{good, stranger, endless, last})
	for i, want := range []error{nil, lifecycle.ErrUndeliverable, lifecycle.ErrUndeliverable, nil} {
		if !errors.Is(errs[i], want) || want == nil && errs[i] != nil {
			t.Errorf("%d: %v, want %v", i, errs[i], want)
		}
	}
	if diff := cmp.Diff([]string{line(good), line(last)}, content(t, r.DB)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Catches an outage that is taken for a refusal, and a registry that does not come back: not the same connection, not the table that was
// missing at first.
func TestWhatCanBeMendedIsTriedAgain(t *testing.T) {
	t.Parallel()
	r, l := open(t, storetest.New(t)), landing()
	for _, trouble := range []struct{ begins, ends string }{
		{`ALTER TABLE design RENAME TO gone`, `ALTER TABLE gone RENAME TO design`},
		{`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`, `SELECT 1`},
		{`ALTER TABLE design RENAME result_url TO key`, `ALTER TABLE design RENAME key TO result_url`},
	} {
		if _, err := r.DB.Exec(trouble.begins); err != nil {
			t.Fatal(err)
		}
		if err := r.Send(t.Context(), []lifecycle.Landing{l})[0]; errors.Is(err, lifecycle.ErrUndeliverable) {
			t.Errorf("%s: %v", trouble.begins, err)
		}
		if _, err := r.DB.Exec(trouble.ends); err != nil {
			t.Fatal(err)
		}
		if err := r.Send(t.Context(), []lifecycle.Landing{l})[0]; err != nil {
			t.Errorf("after %s: %v", trouble.ends, err)
		}
	}
	if diff := cmp.Diff([]string{line(l)}, content(t, r.DB)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Catches a relay that waits for a silent registry longer than its lease.
func TestRegistryIsAway(t *testing.T) {
	t.Parallel()
	silent := servicetest.Listen(t)
	defer silent.Close()
	for name, address := range map[string]string{"down": "127.0.0.1:1", "silent": silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := open(t, "postgres://nobody@"+address+"/none?sslmode=disable")
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			began := time.Now()
			errs := r.Send(ctx, []lifecycle.Landing{landing(), landing()})
			for _, err := range errs {
				if err == nil || errors.Is(err, lifecycle.ErrUndeliverable) {
					t.Errorf("it is told %v", err)
				}
			}
			if took := time.Since(began); took > 2900*time.Millisecond {
				t.Errorf("that took %s", took)
			}
			if err := r.Ping(ctx); err == nil {
				t.Error("it says that it is well")
			}
		})
	}
}
