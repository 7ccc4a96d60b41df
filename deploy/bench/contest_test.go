package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"framerun.dev/deploy/bench/load"
	"github.com/google/go-cmp/cmp"
)

// fake is a contender whose n-th round takes the n-th of the times for its operations.
func fake(name string, log *[]string, times ...time.Duration) contender {
	round := 0
	return contender{name: name, run: func(_ context.Context, _, n int) (load.Sample, error) {
		*log = append(*log, name)
		took := slices.Repeat([]time.Duration{times[round%len(times)]}, n)
		round++
		return load.Of(took, time.Second), nil
	}}
}

func still(context.Context) error { return nil }

func TestContestAlternatesAndTakesMedians(t *testing.T) {
	var log []string
	a := fake("a", &log, 3*time.Millisecond, 9*time.Millisecond, time.Millisecond)
	b := fake("b", &log, 2*time.Millisecond)
	c := contest{contenders: []contender{a, b}, clients: 4, pace: pace{rounds: 3, most: 10}, settle: still}
	standings, err := c.hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "b", "a", "a", "b"}, log); diff != "" {
		t.Errorf("order of the rounds (-want +got):\n%s", diff)
	}
	if got := standings[0]; got.rate != 8 || got.p50 != 3*time.Millisecond { // 10 is no multiple of 4
		t.Errorf("a: %v a second, p50 %v; want 8 and the middle one of 3, 9 and 1 ms", got.rate, got.p50)
	}
}

// Whoever is slow is given few operations and whoever is quick many, so that their rounds are about as long.
func TestCountFillsARound(t *testing.T) {
	var asked []int
	quick := contender{name: "quick", run: func(_ context.Context, _, n int) (load.Sample, error) {
		asked = append(asked, n)
		return load.Of(make([]time.Duration, n), time.Duration(n)*time.Millisecond), nil
	}}
	c := contest{contenders: []contender{quick}, clients: 2, pace: pace{rounds: 1, length: 2 * time.Second, most: 10_000}, settle: still}
	if _, err := c.hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{4, 500, 2000}, asked); diff != "" {
		t.Errorf("operations asked for (-want +got):\n%s", diff)
	}
}

func TestCheckFindsOutWhoDidLess(t *testing.T) {
	stored := func(n int) func(context.Context) (int, error) {
		return func(context.Context) (int, error) { return n, nil }
	}
	done := func(count, failed int) load.Sample {
		return load.Sample{Count: count, Failed: failed, Failure: "503 no"}
	}
	for _, c := range []struct {
		name   string
		who    contender
		sample load.Sample
		want   string
	}{
		{"all done", contender{stored: stored(10)}, done(10, 0), ""},
		{"less than asked", contender{}, done(9, 0), "10 operations asked for, 9 done"},
		{"less stored", contender{stored: stored(9)}, done(10, 0), "the database holds 9"},
		{"more stored", contender{stored: stored(11)}, done(10, 0), "the database holds 11"},
		{"one failed", contender{}, done(9, 1), "the first with 503 no"},
		{"one failed and may", contender{lenient: true}, done(9, 1), ""},
		{"by time", contender{timed: true}, done(7, 0), ""},
		{"by time, nothing", contender{timed: true}, done(0, 0), "nothing was done"},
		{"unknown", contender{stored: func(context.Context) (int, error) { return 0, errors.New("gone") }}, done(10, 0), "gone"},
	} {
		err := c.who.check(t.Context(), c.sample, 10)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}
