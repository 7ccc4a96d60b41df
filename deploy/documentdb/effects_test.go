package main

import (
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"framerun.dev/deploy/documentdb/server"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/resultdoc"
	"framerun.dev/pkg/servicetest"
)

// Catches a document store that keeps the row from moving on while it is down, and decisions that are lost or mixed up meanwhile.
func TestStoreComesBack(t *testing.T) {
	t.Parallel()
	c, dir, address := world(t), t.TempDir(), servicetest.FreeAddress(t)
	c.shelf = enter(t, "mongodb://"+address+"/framerun?directConnection=true")
	c.carry(t)
	confirmed, rejected := c.In(t, lifecycle.WF2Des, lifecycle.AwaitingConfirm), c.In(t, lifecycle.WF2Des, lifecycle.AwaitingConfirm)
	if now := c.decide(t, confirmed, lifecycle.Confirm); now.State != lifecycle.Assembling {
		t.Errorf("the confirmed run is %s", now.State)
	}
	if now := c.decide(t, rejected, lifecycle.Reject); now.State != lifecycle.Rejected {
		t.Errorf("the rejected run is %s", now.State)
	}
	c.Step(t, confirmed, lifecycle.Complete) // the rest of its life goes on as well
	servicetest.Eventually(t, "the causes are kept", func() bool {
		waiting := c.waiting(t)
		return len(waiting) == 2 && waiting[0].Cause != nil && waiting[1].Cause != nil
	})

	s, err := server.Start(address, dir, slog.New(slog.DiscardHandler))
	must(t, err)
	t.Cleanup(func() { s.Close() })
	for _, run := range []lifecycle.Run{confirmed, rejected} {
		c.put(t, parsed(run.ID, 1))
	}
	servicetest.Eventually(t, "both decisions arrive", func() bool { return len(c.waiting(t)) == 0 })
	if parse := c.read(t, confirmed.ID).Parse; parse.Confirmed == nil || parse.Rejected != nil {
		t.Errorf("the confirmed run's document: %+v", parse)
	}
	if parse := c.read(t, rejected.ID).Parse; parse.Confirmed != nil || parse.Rejected == nil {
		t.Errorf("the rejected run's document: %+v", parse)
	}
}

// Catches a decision that is given up, or makes a document of its own, because the worker is slower than the designer.
func TestDecisionWaitsForItsDocument(t *testing.T) {
	t.Parallel()
	c := world(t)
	c.carry(t)
	run := c.In(t, lifecycle.WF2Des, lifecycle.AwaitingConfirm)
	c.SQL.MustExec(`UPDATE wf2des SET attempt = 2`)
	run.Attempt = 2
	c.decide(t, run, lifecycle.Confirm)
	told := func(cause string) func() bool {
		return func() bool {
			waiting := c.waiting(t)
			return len(waiting) == 1 && waiting[0].State == "pending" && waiting[0].Cause != nil && strings.Contains(*waiting[0].Cause, cause)
		}
	}
	servicetest.Eventually(t, "it is told that there is no document", told("no document"))
	must(t, c.Write(t.Context(), resultdoc.Document{RunID: run.ID, Attempt: 1}))
	servicetest.Eventually(t, "it is told that the document is of an older attempt", told("attempt 1"))
	must(t, c.Write(t.Context(), resultdoc.Document{RunID: run.ID, Attempt: 2}))
	c.mustArrive(t, run)
}

// Catches a decision about an old attempt that is written into the document of the new one, or waits for ever.
func TestDecisionOfARequeuedAttemptIsLetGo(t *testing.T) {
	t.Parallel()
	c := world(t)
	run := c.In(t, lifecycle.WF2Des, lifecycle.AwaitingConfirm)
	run = c.decide(t, run, lifecycle.Confirm)
	again := c.decide(t, run, lifecycle.Requeue)
	if again.Attempt != 2 || again.State != lifecycle.Assembling {
		t.Fatalf("the run is %s, attempt %d", again.State, again.Attempt)
	}
	c.put(t, parsed(run.ID, 2)) // the new worker was quicker than the relay
	before := c.text(t, run.ID)
	c.carry(t)
	servicetest.Eventually(t, "the decision is let go", func() bool {
		waiting := c.waiting(t)
		return len(waiting) == 1 && waiting[0].State == "skipped" && strings.Contains(*waiting[0].Cause, "outdated")
	})
	if after := c.text(t, run.ID); after != before {
		t.Errorf("the document changed:\n%s\n%s", before, after)
	}
}

// Catches documents that are looked for in a database of another name than the address gives.
func TestAddressNamesTheDatabase(t *testing.T) {
	t.Parallel()
	s := open(t)
	u, err := url.Parse(s.url)
	must(t, err)
	u.Path = "/elsewhere"
	other := enter(t, u.String())
	must(t, other.Write(t.Context(), resultdoc.Document{RunID: "a", Attempt: 1}))
	elsewhere := s.raw.Database().Client().Database("elsewhere").Collection("design_generation_result")
	if n, err := elsewhere.CountDocuments(t.Context(), map[string]any{}); n != 1 || err != nil {
		t.Errorf("%d documents, %v", n, err)
	}
	if s.text(t, "a") != "" {
		t.Error("it is in framerun as well")
	}
}
