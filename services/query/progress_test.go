package main

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"uuid"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/pkg/events"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/web"
)

// report is a worker's word on the version of run that it works on.
func report(run lifecycle.Run, at time.Time, percent float64, message string) events.Progress {
	return events.Progress{Version: run.UpdatedAt, At: at, Percent: &percent, Message: message}
}

// The latest progress is shown with the run, alone and in lists, until the run moves on.
func TestProgressIsShownUntilTheRunMovesOn(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	at := time.Now().Add(-2 * time.Hour)
	shows := func(want any) {
		t.Helper()
		if got := q.get(t, path(run)).JSON(t)["progress"]; !cmp.Equal(got, want) {
			t.Errorf("progress is %v; want %v", got, want)
		}
		items := q.get(t, "/v1/projects/1/wf2des").JSON(t)["items"].([]any)
		if got := items[0].(map[string]any)["progress"]; !cmp.Equal(got, want) {
			t.Errorf("in the list progress is %v; want %v", got, want)
		}
	}
	shows(nil)
	q.self.heard(run.Ref, report(run, at, 40, "Reading"))
	first := map[string]any{"percent": 40.0, "message": "Reading", "at": web.Timestamp(at)}
	shows(first)
	tag := q.get(t, path(run)).Header.Get("Etag")
	if tag != web.ETag(run.ID, run.UpdatedAt) {
		t.Error("progress changed the ETag")
	}

	q.self.heard(run.Ref, report(run, at.Add(-time.Second), 20, "Late")) // an older one that comes late
	shows(first)
	q.self.heard(run.Ref, events.Progress{Version: run.UpdatedAt, At: at.Add(time.Second), Message: "Nearly there"})
	shows(map[string]any{"percent": nil, "message": "Nearly there", "at": web.Timestamp(at.Add(time.Second))})

	was := run
	run = q.Step(t, run, lifecycle.Parsed).Run
	q.hot.hint(run.Ref)
	shows(nil)
	q.self.heard(run.Ref, report(was, at.Add(time.Minute), 99, "Of the version before"))
	shows(nil)
	run = q.Step(t, run, lifecycle.Confirm).Run
	q.hot.hint(run.Ref)
	q.self.heard(run.Ref, report(run, at.Add(2*time.Minute), 70, "Assembling"))
	shows(map[string]any{"percent": 70.0, "message": "Assembling", "at": web.Timestamp(at.Add(2 * time.Minute))})
	run = q.Step(t, run, lifecycle.Complete).Run
	q.hot.hint(run.Ref)
	q.self.heard(run.Ref, report(run, at.Add(time.Hour), 100, "After the end"))
	shows(nil)
}

// The bus is not believed: what status would not have let pass is not shown, and does not keep the honest word out.
func TestForgedProgressIsNotShown(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	later := run
	later.UpdatedAt = run.UpdatedAt.Add(time.Hour)
	for about, forged := range map[string]events.Progress{
		"a key":             report(run, time.Now(), 1, "AKIAIOSFODNN7EXAMPLE"),
		"100 kB":            report(run, time.Now(), 1, strings.Repeat("long ", 20_000)),
		"too much":          report(run, time.Now(), 1e308, "x"),
		"less than nothing": report(run, time.Now(), -5, "x"),
		"no number":         report(run, time.Now(), math.NaN(), "x"),
		"nothing":           {Version: run.UpdatedAt, At: time.Now()},
		"a later version":   report(later, time.Now(), 1, "x"),
	} {
		q.self.heard(run.Ref, forged)
		if got := q.get(t, path(run)).JSON(t)["progress"]; got != nil {
			t.Errorf("%s is shown: %v", about, got)
		}
	}
	q.self.heard(run.Ref, report(run, time.Now().Add(24*time.Hour), 1, "from tomorrow"))
	q.self.heard(run.Ref, report(run, time.Now(), 42, "honest"))
	if got, _ := q.get(t, path(run)).JSON(t)["progress"].(map[string]any); got["message"] != "honest" {
		t.Errorf("the progress is %v", got)
	}
}

// What is remembered is bounded, and what it remembers of ended runs goes when they are looked at.
func TestProgressRemembersLittle(t *testing.T) {
	t.Parallel()
	m := newProgress()
	for i := range remembered + 10 {
		m.heard(lifecycle.Ref{Kind: lifecycle.WF2Des, ID: fmt.Sprint(i)}, events.Progress{Message: "x"})
		if len(m.latest) > remembered {
			t.Fatalf("%d reports are kept", len(m.latest))
		}
	}
	run := lifecycle.Run{Ref: lifecycle.Ref{Kind: lifecycle.WF2Des, ID: uuid.NewV7().String()}, State: lifecycle.Parsing}
	m.heard(run.Ref, events.Progress{Message: "x"})
	before := len(m.latest)
	run.State = lifecycle.Failed
	if m.on(run) != nil || len(m.latest) != before-1 {
		t.Error("the progress of an ended run is still there")
	}
}
