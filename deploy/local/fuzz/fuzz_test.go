package fuzz

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"framerun.dev/deploy/local/stack"
)

// bin holds the services, built once for the tests of this package.
var bin string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "framerun-fuzz-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	bin = dir
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator),
		"framerun.dev/services/intake", "framerun.dev/services/status", "framerun.dev/services/interaction", "framerun.dev/services/query")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the services: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// start brings up a whole suite on ports that are free.
func start(t *testing.T) *stack.Stack {
	t.Helper()
	c := stack.Config{Dir: t.TempDir(), Bin: bin, Routes: filepath.Join("..", "..", "base", "routes.yaml"), Worker: "none", Env: Env, Log: t.Output()}
	for range 20 {
		c.PortBase = 20000 + 100*rand.IntN(110)
		if !free(c.PortBase) {
			continue
		}
		s, err := stack.Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	t.Fatal("no free ports between 20000 and 31000")
	return nil
}

func free(base int) bool {
	for port := base; port < base+30; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

// TestVariedRequests sends a share of what `make fuzz` sends.
func TestVariedRequests(t *testing.T) {
	s := start(t)
	report, err := Run(t.Context(), Config{Stack: s, Requests: 20_000, Seed: 1, Out: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	report.Write(t.Output())
	if n := len(report.Failures); n > 0 {
		t.Errorf("%d failures with seed 1, told above", n)
	}
	if missing := report.Missing(); len(missing) > 0 {
		t.Errorf("no request was answered with %s: the generator does not reach what it should", strings.Join(missing, ", "))
	}
	for _, outcome := range []string{"applied", "duplicate", "already_terminal"} {
		if report.outcomes[outcome] == 0 {
			t.Errorf("no worker was told %s", outcome)
		}
	}
}
