package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"uuid"

	"framerun.dev/migrations"
	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/localpg"
	"framerun.dev/pkg/store"
	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"
)

// until polls for a condition, for half a minute at most.
func until(t *testing.T, about string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("in half a minute it did not come to this: %s", about)
		}
	}
}

// hold runs a statement in a transaction that stays open until the returned function is called.
func (w *world) hold(t *testing.T, statement string, args ...any) (release func()) {
	t.Helper()
	tx, err := w.sql.BeginTxx(context.WithoutCancel(t.Context()), nil)
	must(t, err)
	t.Cleanup(func() { tx.Rollback() })
	if _, err := tx.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
	return func() { tx.Rollback() }
}

const waitingForLocks = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`

func (w *world) untilBlocked(t *testing.T) {
	t.Helper()
	until(t, "somebody waits for a lock", func() bool { return value[int](t, w, waitingForLocks) > 0 })
}

// leave is a caller who goes away while the command waits.
func leave(t *testing.T, w *world, cancel context.CancelFunc) {
	w.untilBlocked(t)
	cancel()
}

// mustBeClean fails unless the store has given all connections back, and none of them is still in a transaction.
func (w *world) mustBeClean(t *testing.T, s *store.Store) {
	t.Helper()
	until(t, "no connection is in use", func() bool { return s.Pool().Stats().InUse == 0 })
	until(t, "no session is in a transaction", func() bool {
		return value[int](t, w, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND state NOT IN ('idle', 'disabled')`) == 0
	})
}

// Catches a caller who is gone before anything happened and is told that the outcome is unknown, or for whom something happens.
func TestContextEndedBefore(t *testing.T) {
	t.Parallel()
	w := open(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 { // the second time everything is prepared
		for _, kind := range lifecycle.Kinds {
			run := w.create(t, w.creation(kind))
			w.unchanged(t, "a caller who is gone", func() {
				_, created := w.Create(gone, w.creation(kind))
				_, applied := w.Apply(gone, command(lifecycle.Fail, run))
				_, read := w.Run(gone, run.Ref, tenant)
				for _, err := range []error{created, applied, read} {
					if !errors.Is(err, lifecycle.ErrUnavailable) {
						t.Errorf("%s: %v, want ErrUnavailable", kind, err)
					}
				}
			})
		}
	}
	w.mustBeClean(t, w.Store)
}

// A command waits for a lock, and then something happens. Catches a transaction that goes on without its caller, a connection that comes
// back into the pool in the middle of one, and a passing fault that looks like a bug.
func TestFaultsWhileACommandWaits(t *testing.T) {
	t.Parallel()
	for about, strike := range map[string]func(*testing.T, *world, context.CancelFunc){
		"the caller leaves":     leave,
		"the statement is late": func(*testing.T, *world, context.CancelFunc) {},
		"the session is ended": func(t *testing.T, w *world, _ context.CancelFunc) {
			w.untilBlocked(t)
			w.exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := open(t)
			s := openStore(t, w.url, store.Options{Pool: 1, StatementTimeout: 2 * time.Second})
			run := w.in(t, lifecycle.AwaitingConfirm, w.creation(lifecycle.WF2Des))
			before := w.tables(t)
			release := w.hold(t, `SELECT FROM wf2des WHERE id = $1 FOR UPDATE`, run.ID)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := s.Apply(ctx, command(lifecycle.Confirm, run))
				done <- err
			}()
			strike(t, w, cancel)
			if err := <-done; !errors.Is(err, lifecycle.ErrUnavailable) {
				t.Errorf("%v, want ErrUnavailable", err)
			}
			release()
			w.mustBeClean(t, s)
			if diff := cmp.Diff(before, w.tables(t)); diff != "" {
				t.Errorf("something was stored:\n%s", diff)
			}
			if got, err := s.Apply(t.Context(), command(lifecycle.Confirm, run)); err != nil || got.Outcome != lifecycle.Applied {
				t.Errorf("once more: %s, %v", got.Outcome, err)
			}
		})
	}
}

// The same for a creation, which waits for another one of the same node.
func TestFaultsWhileACreationWaits(t *testing.T) {
	t.Parallel()
	for about, strike := range map[string]func(*testing.T, *world, context.CancelFunc){
		"the caller leaves":     leave,
		"the statement is late": func(*testing.T, *world, context.CancelFunc) {},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := open(t)
			s := openStore(t, w.url, store.Options{Pool: 1, StatementTimeout: 2 * time.Second})
			c := w.creation(lifecycle.WF2Des)
			release := w.hold(t, `INSERT INTO wf2des (id, organization_id, project_id, figma_file_key, wf_node_id, screen_id, trigger_surface, phase, created_by, updated_by)
				VALUES ('rival', 1, 1, $1, $2, 'screen', '1', '0', 'user-plugin', 'user-plugin')`, c.Run.FigmaFileKey, c.Run.WFNodeID)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := s.Create(ctx, c)
				done <- err
			}()
			strike(t, w, cancel)
			err := <-done
			unsure := ctx.Err() != nil && errors.Is(err, lifecycle.ErrOutcomeUnknown)
			if !unsure && !errors.Is(err, lifecycle.ErrUnavailable) {
				t.Errorf("%v, want ErrUnavailable", err)
			}
			release()
			w.mustBeClean(t, s)
			again, err := s.Create(t.Context(), c)
			if err != nil || again.ID != c.Run.ID {
				t.Errorf("once more: %v, %v", again, err)
			}
			w.mustHaveBeginnings(t, again, "parsing", "parse")
		})
	}
}

// Catches a pool without room that is taken for an unknown outcome: a request that was never sent can be sent again without a thought.
func TestNoConnectionToBeHad(t *testing.T) {
	t.Parallel()
	w := open(t)
	s := openStore(t, w.url, store.Options{Pool: 1})
	run := w.in(t, lifecycle.AwaitingConfirm, w.creation(lifecycle.WF2Des))
	_, err := s.Create(t.Context(), w.creation(lifecycle.WF2Des)) // so that the statement is prepared
	must(t, err)
	release := w.hold(t, `SELECT FROM wf2des WHERE id = $1 FOR UPDATE`, run.ID)
	done := make(chan error, 1)
	go func() {
		_, err := s.Apply(t.Context(), command(lifecycle.Confirm, run))
		done <- err
	}()
	w.untilBlocked(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Create(ctx, w.creation(lifecycle.WF2Des)); !errors.Is(err, lifecycle.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	release()
	must(t, <-done)
}

// A failover: the store talks to a standby, which then becomes the primary. Catches refusals of a read-only server that show as bugs.
func TestStandbyIsPromoted(t *testing.T) {
	t.Parallel()
	cfg := localpg.Config{Dir: dataDir(t)}
	primary, err := localpg.Start(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() { primary.Stop() })
	address := primary.URL("postgres")
	before := &world{Store: openStore(t, address, store.Options{}), sql: connect(t, address)}
	prepare(t, before.sql)
	run := before.in(t, lifecycle.AwaitingConfirm, before.creation(lifecycle.WF2Des))
	data := value[string](t, before, `SHOW data_directory`)
	must(t, primary.Stop())
	must(t, os.WriteFile(filepath.Join(data, "standby.signal"), nil, 0o644))

	cfg.Port = portOf(t, address)
	keepRunning(t, cfg)
	w := &world{Store: openStore(t, address, store.Options{}), sql: connect(t, address)}
	until(t, "the standby can be read", func() bool {
		got, err := w.Run(t.Context(), run.Ref, tenant)
		return err == nil && cmp.Equal(got, run)
	})
	_, wf2des := w.Create(t.Context(), w.creation(lifecycle.WF2Des))
	_, code2wf := w.Create(t.Context(), w.creation(lifecycle.Code2WF))
	_, applied := w.Apply(t.Context(), command(lifecycle.Confirm, run))
	_, claimed := w.ClaimJobs("wf2des")(t.Context(), 10, lease)
	for _, err := range []error{wf2des, code2wf, applied, claimed} {
		if !errors.Is(err, lifecycle.ErrUnavailable) {
			t.Errorf("on a standby: %v, want ErrUnavailable", err)
		}
	}
	w.exec(t, `SELECT pg_promote(false)`)
	until(t, "the new primary can be written", func() bool {
		got, err := w.Apply(t.Context(), command(lifecycle.Confirm, run))
		return err == nil && got.Run.State == lifecycle.Assembling
	})
	w.create(t, w.creation(lifecycle.Code2WF))
}

// keepRunning runs a server until the test is over. It does not wait for Start, for which a server is ready when it can be written to.
func keepRunning(t *testing.T, cfg localpg.Config) {
	t.Helper()
	gone := make(chan struct{})
	t.Cleanup(func() { <-gone })
	go func() {
		defer close(gone)
		server, err := localpg.Start(t.Context(), cfg)
		if err != nil {
			t.Error(err)
			return
		}
		<-t.Context().Done()
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
}

// Catches a serialization failure that shows as a bug, or two winners under another isolation level.
func TestSerializationFailures(t *testing.T) {
	t.Parallel()
	w := open(t)
	s := openStore(t, w.url+"&default_transaction_isolation=serializable", store.Options{})
	c := w.creation(lifecycle.WF2Des)
	run := w.in(t, lifecycle.AwaitingConfirm, c)
	told := make(chan string, 20)
	for range cap(told) {
		go func() {
			got, err := s.Apply(t.Context(), command(lifecycle.Confirm, run))
			if errors.Is(err, lifecycle.ErrUnavailable) {
				err = lifecycle.ErrUnavailable
			}
			told <- answer(got.Outcome, err)
		}()
	}
	counts := map[string]int{}
	for range cap(told) {
		counts[<-told]++
	}
	if all := counts["applied"] + counts["unchanged"] + counts[lifecycle.ErrUnavailable.Error()]; counts["applied"] != 1 || all != cap(told) {
		t.Errorf("told %v", counts)
	}
	w.mustReplay(t, c.Run)
}

// The line breaks around a COMMIT. Catches "failed" or "applied" for what nobody can know, and a second try that does not find out.
func TestCommitCut(t *testing.T) {
	t.Parallel()
	w := open(t)
	l := lineTo(t, w.url)
	s := openStore(t, l.url, store.Options{Pool: 2})
	for _, arrives := range []bool{true, false} {
		for verb, again := range map[lifecycle.Verb]lifecycle.Outcome{lifecycle.Cancel: lifecycle.Unchanged, lifecycle.Complete: lifecycle.Duplicate} {
			c := w.creation(lifecycle.WF2Des)
			cmd := command(verb, w.in(t, lifecycle.Assembling, c))
			if !arrives {
				again = lifecycle.Applied
			}
			l.follow(cut{word: "COMMIT", arrives: arrives})
			if got, err := s.Apply(t.Context(), cmd); !errors.Is(err, lifecycle.ErrOutcomeUnknown) || !cmp.Equal(got, store.Applied{}) {
				t.Errorf("%s, COMMIT arrives %t: %v, %v, want ErrOutcomeUnknown", verb, arrives, got, err)
			}
			l.follow(cut{})
			if got, err := s.Apply(t.Context(), cmd); err != nil || got.Outcome != again || !got.Run.Ended() {
				t.Errorf("%s again, COMMIT arrived %t: %s, %v, want %s", verb, arrives, got.Outcome, err, again)
			}
			w.mustReplay(t, c.Run)
		}
	}
	w.mustBeClean(t, s)
}

// The line breaks before the COMMIT. Catches a step that is half stored, or an outcome called unknown that is not.
func TestTransactionCut(t *testing.T) {
	t.Parallel()
	w := open(t)
	l := lineTo(t, w.url)
	s := openStore(t, l.url, store.Options{Pool: 2})
	run := w.in(t, lifecycle.Assembling, w.creation(lifecycle.WF2Des))
	for about, word := range map[string]string{"beginning": "BEGIN", "locking": run.ID, "writing": "00-complete"} {
		for _, arrives := range []bool{true, false} {
			w.unchanged(t, "a transaction cut", func() {
				l.follow(cut{word: word, arrives: arrives})
				if _, err := s.Apply(t.Context(), command(lifecycle.Complete, run)); !errors.Is(err, lifecycle.ErrUnavailable) {
					t.Errorf("%s, arrives %t: %v, want ErrUnavailable", about, arrives, err)
				}
				if l.broken() == 0 {
					t.Errorf("%s: the line was never cut", about)
				}
				l.follow(cut{})
			})
		}
	}
	if got, err := s.Apply(t.Context(), command(lifecycle.Complete, run)); err != nil || got.Outcome != lifecycle.Applied {
		t.Errorf("once the line is mended: %s, %v", got.Outcome, err)
	}
}

// The line breaks around the inserting statement, once (the driver tries again by itself) or for good. Catches a run that is stored twice
// or lost, a conflict of a run with itself, and "nothing stored" for what may be.
func TestInsertCut(t *testing.T) {
	t.Parallel()
	w := open(t)
	l := lineTo(t, w.url)
	s := openStore(t, l.url, store.Options{Pool: 2})
	for _, kind := range lifecycle.Kinds {
		_, err := s.Create(t.Context(), w.creation(kind)) // so that the statement is prepared
		must(t, err)
		for _, arrives := range []bool{true, false} {
			for _, times := range []int{0, 1, 2} {
				about := fmt.Sprintf("%s, arrives %t, cut %d times", kind, arrives, times)
				c := w.creation(kind)
				l.follow(cut{word: c.Run.ID, arrives: arrives, times: times})
				_, err := s.Create(t.Context(), c)
				if broken := l.broken(); broken == 0 || times == 0 && err == nil {
					t.Errorf("%s: the line was cut %d times, and yet %v", about, broken, err)
				}
				if err != nil && !errors.Is(err, lifecycle.ErrOutcomeUnknown) {
					t.Errorf("%s: %v, want ErrOutcomeUnknown", about, err)
				}
				l.follow(cut{})
				if again, err := s.Create(t.Context(), c); err != nil || again.ID != c.Run.ID {
					t.Errorf("%s: again: %v, %v", about, again, err)
				}
				w.mustReplay(t, c.Run)
				if entries := value[int](t, w, `SELECT count(*) FROM outbox WHERE run_id = $1`, c.Run.ID); entries != 2 {
					t.Errorf("%s: %d outbox entries, want 2", about, entries)
				}
			}
		}
	}
}

// Catches a server that is down for a moment and stays down for the store, a caller who is told more than is known, and a lost run.
func TestServerStopsAndComesBack(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	server, err := localpg.Start(t.Context(), localpg.Config{Dir: dir})
	must(t, err)
	t.Cleanup(func() { server.Stop() })
	address := server.URL("postgres")
	w := &world{Store: openStore(t, address, store.Options{}), sql: connect(t, address), url: address}
	prepare(t, w.sql)
	run := w.in(t, lifecycle.AwaitingConfirm, w.creation(lifecycle.WF2Des))

	must(t, server.Stop())
	until(t, "every call says that the server is away", func() bool {
		_, created := w.Create(t.Context(), w.creation(lifecycle.WF2Des))
		_, applied := w.Apply(t.Context(), command(lifecycle.Confirm, run))
		_, read := w.Run(t.Context(), run.Ref, tenant)
		_, listed := w.List(t.Context(), run.Kind, tenant, store.Filter{}, store.Position{}, 10)
		_, claimed := w.ClaimJobs("wf2des")(t.Context(), 10, lease)
		pinged := w.Ping(t.Context())
		for _, err := range []error{applied, read, listed, claimed, pinged} {
			if !errors.Is(err, lifecycle.ErrUnavailable) {
				t.Fatalf("%v, want ErrUnavailable", err)
			}
		}
		// Over a connection that broke unnoticed the insert may have left.
		if !errors.Is(created, lifecycle.ErrUnavailable) && !errors.Is(created, lifecycle.ErrOutcomeUnknown) {
			t.Fatalf("%v, want ErrUnavailable", created)
		}
		return errors.Is(created, lifecycle.ErrUnavailable)
	})

	server, err = localpg.Start(t.Context(), localpg.Config{Dir: dir, Port: portOf(t, address)})
	must(t, err)
	t.Cleanup(func() { server.Stop() })
	back := time.Now()
	until(t, "the store is back", func() bool {
		got, err := w.Apply(t.Context(), command(lifecycle.Confirm, run))
		return err == nil && got.Run.State == lifecycle.Assembling
	})
	if took := time.Since(back); took > 2*time.Second {
		t.Errorf("the first success came %v after the server was back", took)
	}
	w.create(t, w.creation(lifecycle.Code2WF))
}

func prepare(t *testing.T, db *sqlx.DB) {
	t.Helper()
	for _, step := range []func(context.Context, *sql.DB) error{platform.Up, migrations.Up, platform.Seed} {
		must(t, step(t.Context(), db.DB))
	}
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	port, err := strconv.Atoi(u.Port())
	must(t, err)
	return port
}

// Catches an address that is taken although it cannot work, and a password in an error.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	secret := uuid.NewV4().String()
	for _, dsn := range []string{"", "host=db password=" + secret, "mysql://u:" + secret + "@db/x", "postgres://u:" + secret + "@db:port/x", "://" + secret} {
		s, err := store.Open(dsn, store.Options{})
		if err == nil {
			s.Close()
			t.Errorf("%q was taken", strings.ReplaceAll(dsn, secret, "secret"))
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("the error tells the password: %v", err)
		}
	}
}

// A server that takes connections and says nothing, as one that hangs does. Catches a call that waits for it for ever.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	door := listen(t)
	go func() {
		for {
			conn, err := door.Accept()
			if err != nil {
				return // the test is over
			}
			t.Cleanup(func() { conn.Close() })
		}
	}()
	s := openStore(t, "postgres://x@"+door.Addr().String()+"/x?sslmode=disable", store.Options{StatementTimeout: 500 * time.Millisecond})
	began := time.Now()
	if err := s.Ping(t.Context()); !errors.Is(err, lifecycle.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

// A server that falls silent in the middle of its work. Catches a call that lasts as long as the silence.
func TestServerFallsSilent(t *testing.T) {
	t.Parallel()
	w := open(t)
	l := lineTo(t, w.url)
	s := openStore(t, l.url, store.Options{Pool: 2, StatementTimeout: 500 * time.Millisecond})
	run := w.create(t, w.creation(lifecycle.Code2WF))
	if _, err := s.Run(t.Context(), run.Ref, tenant); err != nil {
		t.Fatal(err)
	}
	l.hush(true)
	defer l.hush(false)
	began := time.Now()
	if _, err := s.Run(t.Context(), run.Ref, tenant); !errors.Is(err, lifecycle.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the call took %s", took)
	}
}

// dataDir is a folder for a server's data that its user may enter even if root runs the tests, which t.TempDir is not.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "store-test-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	return dir
}
