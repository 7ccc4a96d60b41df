package main

import (
	"strings"
	"testing"

	"framerun.dev/pkg/lifecycle"
)

// Catches an intervention that is not what it says, a dry run that changes something, and a skipped job that nobody is warned of.
func TestOutbox(t *testing.T) {
	t.Parallel()
	d := deskOf(t)
	run := d.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	job := d.entries(t, run)[0]
	d.as(t, "outbox", "retry", job).want(t, exitRefused) // it is pending
	d.SQL.MustExec(`UPDATE outbox SET state = 'set_aside', settled_at = now() WHERE destination = 'jobs'`)

	before := d.Content(t)
	d.ctl(t, "outbox", "retry", job, "--dry-run").want(t, exitDone)
	d.ctl(t, "outbox", "skip", job, "--dry-run").want(t, exitDone)
	if !same(before, d.Content(t)) {
		t.Error("a dry run changed something")
	}
	got := d.as(t, "outbox", "retry", job, "-o", "json").want(t, exitDone).json(t)
	if got["intervention"] != "retry" || got["dryRun"] != false || got["entry"].(map[string]any)["state"] != "pending" {
		t.Errorf("retry says %v", got)
	}
	if line := d.LastLine(t, run.Ref); line.What != "delivery_retried" || line.Actor != operator || line.Outcome != "noted" || line.Data != `{"delivery": "jobs parse"}` {
		t.Errorf("the timeline says %+v", line)
	}
	skipped := d.as(t, "outbox", "skip", job).want(t, exitDone)
	if !strings.Contains(skipped.out, "The run is open and waits for this job.") || !strings.Contains(skipped.out, "runctl runs requeue "+run.ID) {
		t.Errorf("nobody is warned: %s", skipped.out)
	}
	if line := d.LastLine(t, run.Ref); line.What != "delivery_skipped" || line.Actor != operator {
		t.Errorf("the timeline says %+v", line)
	}
	d.as(t, "outbox", "skip", job).want(t, exitRefused)
	if d.Row(t, run.Ref)["updated_by"] == operator {
		t.Error("the run itself was changed")
	}
}
