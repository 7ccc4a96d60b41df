package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/relay"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/store"
	"framerun.dev/pkg/store/storetest"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// The variables that make this test binary a relay which stops at a crash point: its name, and where the two databases are.
const doomed, doomedStore, doomedShelf = "FRAMERUN_DOOMED", "FRAMERUN_DOOMED_STORE", "FRAMERUN_DOOMED_SHELF"

const (
	beforeClaim   = "after the commit, before the claim"
	beforeEffect  = "after the claim, before the effect"
	beforeForgets = "after the effect, before it is forgotten"
)

// crashed is a relay in a process of its own that was stopped at a crash point.
type crashed struct {
	*servicetest.World
	*shelf
	store *store.Store
	child *exec.Cmd
	letGo io.Closer // the child goes on when this is closed
}

// world is a store that writes effects beside a document store.
func world(t *testing.T) *crashed {
	t.Helper()
	c := &crashed{World: servicetest.New(t), shelf: open(t)}
	var err error
	if c.store, err = store.Open(c.World.URL, store.Options{Effects: store.Effects{Documents: true}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.store.Close() })
	return c
}

// decide carries the designer's word out and gives the run as it stands.
func (c *crashed) decide(t *testing.T, run lifecycle.Run, verb lifecycle.Verb) lifecycle.Run {
	t.Helper()
	applied, err := c.store.Apply(t.Context(), lifecycle.Command{Verb: verb, Run: run.Ref, Attempt: run.Attempt,
		By: lifecycle.Actor{Voice: lifecycle.User, Name: platform.UserPlugin}})
	if err != nil {
		t.Fatal(err)
	}
	return applied.Run
}

// lane carries decisions, and calls at on its way.
func lane(s *store.Store, d *shelf, at func(point string)) relay.Lane[lifecycle.Announcement] {
	return relay.Lane[lifecycle.Announcement]{Name: "documents", Store: s, Log: slog.New(slog.DiscardHandler), Sender: stopping{d, at},
		Claim: func(ctx context.Context, limit int, lease time.Duration) ([]store.Parcel[lifecycle.Announcement], error) {
			at(beforeClaim)
			return s.ClaimDecisions(ctx, limit, lease)
		}}
}

// stopping is a sender that tells where it is.
type stopping struct {
	*shelf
	at func(point string)
}

func (s stopping) Send(ctx context.Context, decisions []lifecycle.Announcement) []error {
	s.at(beforeEffect)
	errs := s.shelf.Send(ctx, decisions)
	s.at(beforeForgets)
	return errs
}

// carry runs a lane of this process until the test ends.
func (c *crashed) carry(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- lane(c.store, c.shelf, func(string) {}).Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
}

// Catches a decision that is lost or doubled when its relay is killed or frozen anywhere between the commit and the end of the effect.
func TestRelayStopsOnTheWayToTheDocument(t *testing.T) {
	if point := os.Getenv(doomed); point != "" {
		relayUntil(t, point)
	}
	t.Parallel()
	for _, point := range []string{beforeClaim, beforeEffect, beforeForgets} {
		for how, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "frozen": syscall.SIGSTOP} {
			t.Run(how+" "+point, func(t *testing.T) {
				t.Parallel()
				c := world(t)
				run := c.In(t, lifecycle.WF2Des, lifecycle.AwaitingConfirm)
				c.put(t, parsed(run.ID, 1))
				c.decide(t, run, lifecycle.Confirm)
				c.stopAt(t, point)
				if err := c.child.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
				c.letGo.Close()
				written := c.text(t, run.ID)
				c.carry(t)
				c.mustArrive(t, run)
				if point == beforeForgets {
					if diff := cmp.Diff(written, c.text(t, run.ID)); diff != "" {
						t.Errorf("the second telling changed the document:\n%s", diff)
					}
				}
				settled := c.text(t, run.ID)
				if signal == syscall.SIGSTOP { // the late one goes on, and does what it was about to do
					c.child.Process.Signal(syscall.SIGCONT)
					c.child.Wait()
				}
				if diff := cmp.Diff(settled, c.text(t, run.ID)); diff != "" {
					t.Errorf("the late relay changed the document:\n%s", diff)
				}
				c.mustArrive(t, run)
			})
		}
	}
}

// relayUntil is the doomed relay: it says that it has reached the point and waits to be stopped. Where it is let go on, it finishes its
// round and ends.
func relayUntil(t *testing.T, point string) {
	s, err := store.Open(os.Getenv(doomedStore), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	letGo := false
	err = lane(s, enter(t, os.Getenv(doomedShelf)), func(at string) {
		switch {
		case letGo && at == beforeClaim:
			stop() // the round is over
		case !letGo && at == point:
			fmt.Println("reached")
			bufio.NewReader(os.Stdin).ReadByte() // the parent stops the process first, and then closes this
			letGo = true
		}
	}).Run(ctx)
	os.Exit(map[bool]int{true: 0, false: 1}[err == nil])
}

// stopAt starts a doomed relay and waits until it is at the point.
func (c *crashed) stopAt(t *testing.T, point string) {
	t.Helper()
	c.child = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRelayStopsOnTheWayToTheDocument$")
	c.child.Env = append(os.Environ(), doomed+"="+point, doomedStore+"="+c.World.URL, doomedShelf+"="+c.shelf.url)
	var err error
	if c.letGo, err = c.child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.child.Process.Kill()
		c.child.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "reached\n" || err != nil {
		t.Fatalf("the relay says %q, %v", line, err)
	}
}

// mustArrive waits until nothing is on its way any more: then the decision stands in the document.
func (c *crashed) mustArrive(t *testing.T, run lifecycle.Run) {
	t.Helper()
	servicetest.Eventually(t, "the entry is forgotten", func() bool { return len(c.waiting(t)) == 0 })
	if d := c.read(t, run.ID).Parse.Confirmed; d == nil || d.By != platform.UserPlugin {
		t.Errorf("the document holds %+v", d)
	}
}

// entry is what waits to be told to a document, or was let go.
type entry struct {
	RunID string  `db:"run_id"`
	State string  `db:"state"`
	Cause *string `db:"last_error"`
}

func (c *crashed) waiting(t *testing.T) (entries []entry) {
	t.Helper()
	must(t, c.SQL.SelectContext(t.Context(), &entries,
		`SELECT run_id, state, last_error FROM outbox WHERE destination = 'documents' ORDER BY id`))
	return entries
}
