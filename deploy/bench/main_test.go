package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"framerun.dev/deploy/bench/pgbench"
	"framerun.dev/pkg/lifecycle"
)

// root holds what TestMain has built, laid out like the workspace.
var root string

func TestMain(m *testing.M) {
	code, err := withPrograms(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		code = 1
	}
	os.Exit(code)
}

func withPrograms(run func() int) (int, error) {
	workspace, err := filepath.Abs("../..")
	if err != nil {
		return 0, err
	}
	if root, err = os.MkdirTemp("", "framerun-bench-test-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(root)
	cmd := exec.Command("go", "build", "-o", filepath.Join(root, ".bin")+string(filepath.Separator),
		"./services/intake", "./services/status", "./services/interaction", "./services/query", "./deploy/bench")
	cmd.Dir = workspace
	cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(workspace, "go.work"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("go build: %w: %s", err, out)
	}
	return run(), nil
}

// tiny is a measuring that shows nothing but that it is one.
func tiny(t *testing.T) config {
	t.Helper()
	return config{
		bin: filepath.Join(root, ".bin"), routes: "../base/routes.yaml", portBase: portBase(t), log: t.Output(), out: &bytes.Buffer{},
		pace: pace{rounds: 1, most: 40}, patience: time.Second, history: 1000,
		clients: []int{2}, sizes: []int64{500, 1000}, waiters: []int{20},
	}
}

func portBase(t *testing.T) int {
	t.Helper()
	const width = 32
	for range 200 {
		base := 20000 + width*rand.IntN(11000/width)
		taken := false
		for port := base; port < base+width && !taken; port++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if taken = err != nil; !taken {
				l.Close()
			}
		}
		if !taken {
			return base
		}
	}
	t.Fatal("no free ports")
	return 0
}

// Every operation and every baseline does what it says: contests check their rows, so a side that did nothing would end this with an error.
func TestEverySideDoesItsWork(t *testing.T) {
	c := tiny(t)
	if err := measure(t.Context(), c, withHistory(sidesWork(t), growth)); err != nil {
		t.Fatal(err)
	}
	shown := c.out.(*bytes.Buffer).String()
	for _, g := range growths() {
		line := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(g.name+": "+suiteName) + ` \| [0-9.,]+ \([0-9.]+\) \| [0-9.,]+ \([0-9.]+\) \| \*\*`)
		if !line.MatchString(shown) {
			t.Errorf("no line of %s with two sizes:\n%s", g.name, shown)
		}
	}
}

func sidesWork(t *testing.T) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		river, err := b.house.startRiver(ctx, "beside")
		if err != nil {
			return err
		}
		defer river.close()
		return b.within(ctx, "suite", "beside", func(s *suite) error {
			standings, err := b.hold(ctx, s, 1, b.pace, s.relay()) // before there is a second suite, which would carry too
			if err != nil {
				return err
			}
			working(t, "relay", standings, 1)
			for _, table := range append(writingTables(river), readingTables(b.history)...) {
				everySide(ctx, t, b, s, table)
			}
			return errors.Join(waits(ctx, t, s), idle(ctx, t, b, s))
		})
	}
}

// sides is how many there are beside the suite, at peerAt connections: pgbench's, and those that need no pgbench.
var sides = map[string][2]int{
	"Create a wf2des run: POST, fresh nodes":      {3, 4},
	"Create a code2wf run: POST":                  {3, 0},
	"Complete a run: the worker's signed webhook": {3, 1},
	"Confirm a run":                               {3, 0},
	"GET a run that many poll":                    {0, 1},
	"GET a run that has not changed: 304":         {0, 1},
	"GET from PostgreSQL: another run each time":  {1, 0},
	"List of 50, the project's newest":            {1, 0},
	"List of 50, a file's unplaced runs":          {1, 0},
}

func everySide(ctx context.Context, t *testing.T, b *bench, s *suite, table table) {
	t.Helper()
	all, err := table.sides(ctx, s, peerAt)
	if err != nil {
		t.Fatalf("%s: %v", table.title, err)
	}
	standings, err := b.hold(ctx, s, 2, b.pace, all...)
	if err != nil {
		t.Fatalf("%s: %v", table.title, err)
	}
	want := 1 + sides[table.title][1]
	if _, err := pgbench.Find(); err == nil {
		want += sides[table.title][0]
	}
	working(t, table.title, standings, want)
}

func working(t *testing.T, title string, standings []standing, want int) {
	t.Helper()
	if len(standings) != want {
		t.Errorf("%s: %d sides, want %d", title, len(standings), want)
	}
	for _, it := range standings {
		if it.rate <= 0 || it.failed > 0 {
			t.Errorf("%s: %s: %v a second, %d failed: %s", title, it.name, it.rate, it.failed, it.failure)
		}
	}
	if standings[0].name != suiteName || standings[0].memory == 0 {
		t.Errorf("%s: the suite's side is %q with %d bytes", title, standings[0].name, standings[0].memory)
	}
}

func waits(ctx context.Context, t *testing.T, s *suite) error {
	t.Helper()
	w, err := s.waiting(ctx, 20)
	if err != nil {
		return err
	}
	if w.together.Count != 20 || w.apart.Count != 20 || w.together.Failed+w.apart.Failed > 0 {
		t.Errorf("of 20 who wait, %d are woken by one change and %d by their own", w.together.Count, w.apart.Count)
	}
	return nil
}

// idle sides are found out: one that is quick because it writes nothing, and one whose work was done before.
func idle(ctx context.Context, t *testing.T, b *bench, s *suite) error {
	t.Helper()
	again := s.create(lifecycle.WF2Des)
	if err := again.prepare(ctx, b.pace.most); err != nil {
		return err
	}
	if _, err := again.run(ctx, 2, b.pace.most); err != nil {
		return err
	}
	again.prepare = nil
	if _, err := b.hold(ctx, s, 2, b.pace, again); err == nil || !strings.Contains(err.Error(), "open_run") {
		t.Errorf("runs that stand already were created: %v", err)
	}
	if s.pgbench == "" {
		return nil
	}
	for _, c := range []script{creating(lifecycle.WF2Des)[0], completing()[1], confirming()[2]} {
		c.text = pgbench.One("SELECT :n::bigint")
		if _, err := b.hold(ctx, s, 2, b.pace, s.writing(c)); err == nil || !strings.Contains(err.Error(), "the database holds 0") {
			t.Errorf("%s: a baseline that writes nothing: %v", c.table, err)
		}
	}
	return nil
}
