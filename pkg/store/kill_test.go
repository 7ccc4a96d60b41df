package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/localpg"
	"framerun.dev/pkg/store"
)

// Catches a batch of which somebody is told that it is stored although it is lost, or told of a bug, when the server goes away under it.
func TestServerStopsUnderACrowd(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	server, err := localpg.Start(t.Context(), localpg.Config{Dir: dir})
	must(t, err)
	t.Cleanup(func() { server.Stop() })
	address := server.URL("postgres")
	w := &world{Store: openStore(t, address, store.Options{}), sql: connect(t, address), url: address}
	prepare(t, w.sql)

	var acknowledged sync.Map // id → the run as somebody was told of it last
	var count atomic.Int64
	var all sync.WaitGroup
	for i := range 48 {
		all.Go(func() {
			err := w.createAndFail(t.Context(), lifecycle.Kinds[i%2], func(run lifecycle.Run) {
				acknowledged.Store(run.ID, run)
				count.Add(1)
			})
			if !errors.Is(err, lifecycle.ErrUnavailable) && !errors.Is(err, lifecycle.ErrOutcomeUnknown) {
				t.Errorf("the server stopped, and a caller was told: %v", err)
			}
		})
	}
	until(t, "many are stored", func() bool { return count.Load() > 500 })
	must(t, server.Stop())
	all.Wait()

	server, err = localpg.Start(t.Context(), localpg.Config{Dir: dir, Port: portOf(t, address)})
	must(t, err)
	t.Cleanup(func() { server.Stop() })
	acknowledged.Range(func(_, v any) bool {
		told := v.(lifecycle.Run)
		if got := w.read(t, told.Ref); got.UpdatedAt.Before(told.UpdatedAt) {
			t.Errorf("run %s was acknowledged as %s and is %s", told.ID, told.State, got.State)
		}
		return true
	})
	w.mustHold(t)
}

// createAndFail stores one run after the other until a call fails, and gives that error.
func (w *world) createAndFail(ctx context.Context, kind lifecycle.Kind, acknowledge func(lifecycle.Run)) error {
	for {
		run, err := w.Create(ctx, w.creation(kind))
		if err != nil {
			return err
		}
		acknowledge(run)
		got, err := w.Apply(ctx, command(lifecycle.Fail, run))
		if err != nil {
			return err
		}
		acknowledge(got.Run)
	}
}

// doomed names the variable that makes this test binary a process which stores runs in the database at the address given, says so line by
// line, and is killed by its parent.
const doomed = "FRAMERUN_STORE_DOOMED"

// Catches an answer that is given before the commit, a part of a batch that is stored without the rest of it, and two callers who are
// both told that they ended a run.
func TestKilledUnderACrowd(t *testing.T) {
	if address := os.Getenv(doomed); address != "" {
		storeUntilKilled(t, address)
		os.Exit(1) // nothing could be stored; it must not go on as if it were the parent
	}
	t.Parallel()
	w := openTogether(t)
	var said []string
	for range 4 {
		said = append(said, w.kill(t, 100+rand.IntN(400))...)
	}
	until(t, "the killed processes' sessions have ended", func() bool {
		return value[int](t, w, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'doomed'`) == 0
	})
	w.mustRemember(t, said)
	if commits, lines := w.commits(t, `seq = 1`); commits*2 > lines {
		t.Errorf("%d creations took %d commits: there was no crowd to kill", lines, commits)
	}
	w.mustHold(t)
}

// kill runs a doomed process, kills it after so many lines, and gives all whole lines that it has said.
func (w *world) kill(t *testing.T, lines int) (said []string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledUnderACrowd$")
	child.Env = append(os.Environ(), doomed+"="+w.url+"&application_name=doomed")
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	defer child.Wait()
	for in := bufio.NewReader(out); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			break // what was written last may be half a line
		}
		said = append(said, strings.TrimSpace(line))
		if len(said) == lines {
			must(t, child.Process.Kill())
		}
	}
	if len(said) < lines {
		t.Fatalf("the process ended by itself and said %q", said)
	}
	return said
}

// storeUntilKilled creates runs and ends each of them twice at the same time, and says what was acknowledged. A parent that is gone takes
// this process along: nobody reads what it writes.
func storeUntilKilled(t *testing.T, address string) {
	w := &world{Store: openStore(t, address, store.Options{})}
	rivals := map[lifecycle.Kind]lifecycle.Verb{lifecycle.WF2Des: lifecycle.Cancel, lifecycle.Code2WF: lifecycle.Complete}
	w.nodes.Store(rand.Int64N(1 << 40)) // other nodes than the process before
	var all sync.WaitGroup
	for i := range 48 {
		all.Go(func() {
			for kind := lifecycle.Kinds[i%2]; ; {
				run, err := w.Create(t.Context(), w.creation(kind))
				if err != nil {
					fmt.Println("nobody", err)
					return
				}
				fmt.Println(run.ID, "created")
				var both sync.WaitGroup
				for _, verb := range []lifecycle.Verb{lifecycle.Fail, rivals[kind]} {
					both.Go(func() {
						got, err := w.Apply(t.Context(), command(verb, run))
						fmt.Println(run.ID, fate(got, err))
					})
				}
				both.Wait()
			}
		})
	}
	all.Wait()
}

// fate is the end that a caller has brought about, or why she has not.
func fate(got store.Applied, err error) string {
	if err == nil && got.Outcome == lifecycle.Applied {
		return string(got.Run.State)
	}
	return answer(got.Outcome, err)
}

// mustRemember fails unless everything that was said is so.
func (w *world) mustRemember(t *testing.T, said []string) {
	t.Helper()
	stored := map[string]bool{}
	for _, row := range w.columns(t, `SELECT run_id || ' ' || what AS line FROM run_event WHERE outcome = 'applied'`) {
		stored[row["line"].(string)] = true
	}
	ended := map[string]bool{}
	for _, line := range said {
		id, what, _ := strings.Cut(line, " ")
		switch what {
		case "failed", "cancelled", "completed":
			if ended[id] {
				t.Errorf("two callers were told that they ended run %s", id)
			}
			ended[id] = true
			fallthrough
		case "created":
			if !stored[line] {
				t.Errorf("acknowledged and lost: %s", line)
			}
		case "already_terminal", "refused, it is failed":
		default:
			t.Errorf("said: %s", line)
		}
	}
}
