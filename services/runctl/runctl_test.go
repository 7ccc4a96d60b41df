package main

import (
	"bytes"
	"encoding/json/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/store/storetest"
)

func TestMain(m *testing.M) {
	for _, name := range []string{"NATS_URL", "SQS_QUEUE_URLS", "STATUS_URL", "WEBHOOK_SECRETS", "COGNITO_ISSUER", "RUNCTL_OPERATOR"} {
		os.Unsetenv(name) // the tests' flags alone say where things are
	}
	storetest.Main(m)
}

const operator = platform.UserAPI

// desk is where an operator sits: a database, and no NATS unless a test starts one.
type desk struct {
	*servicetest.World
	nats string
}

func deskOf(t *testing.T) *desk {
	t.Helper()
	return &desk{World: servicetest.New(t), nats: "nats://" + servicetest.FreeAddress(t)}
}

// told is what a command has said.
type told struct {
	code     int
	out, err string
}

// ctl runs a command line on the desk's database.
func (d *desk) ctl(t *testing.T, args ...string) told {
	t.Helper()
	return ctl(t, "", append(args, "--database-url", d.URL, "--nats-url", d.nats)...)
}

// as is ctl in the operator's name.
func (d *desk) as(t *testing.T, args ...string) told {
	t.Helper()
	return d.ctl(t, append(args, "--operator", operator)...)
}

// ctl runs a command line with in on standard input.
func ctl(t *testing.T, in string, args ...string) told {
	t.Helper()
	var out, err bytes.Buffer
	code := run(t.Context(), args, streams{strings.NewReader(in), &out, &err})
	return told{code, out.String(), err.String()}
}

// want stops the test unless the command ended with the code.
func (got told) want(t *testing.T, code int) told {
	t.Helper()
	if got.code != code {
		t.Fatalf("exit code %d, want %d: %s%s", got.code, code, got.out, got.err)
	}
	return got
}

// json reads what was said with -o json.
func (got told) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(got.out), &v); err != nil {
		t.Fatalf("%v: %s", err, got.out)
	}
	return v
}

// everyState is one run in each state of each kind.
func (d *desk) everyState(t *testing.T) []lifecycle.Run {
	t.Helper()
	var runs []lifecycle.Run
	for _, kind := range lifecycle.Kinds {
		for _, state := range servicetest.StatesOf(kind) {
			runs = append(runs, d.In(t, kind, state))
		}
	}
	return runs
}

// Which command succeeds in which state, told by its exit code, the row, and the timeline under the operator's name; and that a dry run
// foretells it and changes nothing. Catches a change that the lifecycle does not allow, one in nobody's name, and a dry run that lies.
func TestChanges(t *testing.T) {
	t.Parallel()
	const reason = "The generation was stopped. Please start it again."
	commands := map[string][]string{"cancel": {"runs", "cancel"}, "fail": {"runs", "fail", "--reason", reason}, "requeue": {"runs", "requeue"}}
	open, ended := []lifecycle.State{"parsing", "awaiting_confirm", "assembling", "processing"}, lifecycle.Cancelled
	for name, command := range commands {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := deskOf(t)
			for _, run := range d.everyState(t) {
				works := slices.Contains(open, run.State) && (name == "fail" || run.Kind == lifecycle.WF2Des)
				if name == "requeue" {
					works = works && run.State != lifecycle.AwaitingConfirm
				}
				code := map[bool]int{true: exitDone, false: exitRefused}[works || name == "cancel" && run.State == ended]
				before := d.Content(t)
				foretold := d.ctl(t, append(command, run.ID, "--dry-run", "-o", "json")...).want(t, code)
				if after := d.Content(t); !same(before, after) {
					t.Errorf("%s: a dry run changed something", run.State)
				}
				done := d.as(t, append(command, run.ID, "-o", "json")...).want(t, code)
				if !works {
					if !same(before, d.Content(t)) {
						t.Errorf("%s: what was refused changed something", run.State)
					}
					continue
				}
				line := d.LastLine(t, run.Ref)
				if line.Actor != operator || line.By != "backend" || line.Outcome != "applied" {
					t.Errorf("%s: the timeline says %+v", run.State, line)
				}
				a, b := foretold.json(t), done.json(t)
				if a["dryRun"] != true || b["dryRun"] != false || a["run"].(map[string]any)["state"] != b["run"].(map[string]any)["state"] ||
					a["run"].(map[string]any)["attempt"] != b["run"].(map[string]any)["attempt"] || a["job"] != b["job"] || b["outcome"] != "applied" {
					t.Errorf("%s: foretold %s, and then %s", run.State, foretold.out, done.out)
				}
			}
		})
	}
}

func same(a, b map[string]string) bool {
	for name := range a {
		if a[name] != b[name] {
			return false
		}
	}
	return len(a) == len(b)
}

// After a requeue the job waits for the relay with the next attempt, and the old worker is shut out. Catches a requeue that leaves the
// attempt, sends no job, or lets the old worker end the run.
func TestRequeueFencesTheOldWorker(t *testing.T) {
	t.Parallel()
	for state, stage := range map[lifecycle.State]string{lifecycle.Parsing: "jobs parse", lifecycle.Assembling: "jobs assemble"} {
		d := deskOf(t)
		was := d.In(t, lifecycle.WF2Des, state)
		d.SQL.MustExec(`DELETE FROM outbox`)
		d.as(t, "runs", "requeue", was.ID).want(t, exitDone)
		var jobs []string
		for _, l := range d.Outbox(t, was.Ref) {
			if l.Destination == "jobs" && l.Attempt == 2 && l.State == "pending" {
				jobs = append(jobs, servicetest.Told([]servicetest.Letter{l})...)
			}
		}
		if !slices.Equal(jobs, []string{stage}) {
			t.Errorf("%s: the jobs of attempt 2 are %v, want %s", state, jobs, stage)
		}
		for _, verb := range []lifecycle.Verb{lifecycle.Fail, lifecycle.Complete} {
			if late := d.Step(t, was, verb); late.Outcome != lifecycle.Superseded || late.Run.State != state || late.Run.Attempt != 2 {
				t.Errorf("%s: the old worker's %s is %s", state, verb, late.Outcome)
			}
		}
		if d.Row(t, was.Ref)["updated_by"] != operator {
			t.Errorf("%s: the row says that %v changed it", state, d.Row(t, was.Ref)["updated_by"])
		}
	}
}

// Catches a change in the name of nobody, or of somebody whom the platform does not know, and a reason that the designer must not read.
func TestChangesWantAnOperatorAndProse(t *testing.T) {
	t.Parallel()
	d := deskOf(t)
	run := d.In(t, lifecycle.Code2WF, lifecycle.Processing)
	entry := d.entries(t, run)[0]
	before := d.Content(t)
	for _, args := range [][]string{
		{"runs", "fail", run.ID, "--reason", "It failed."},
		{"runs", "fail", run.ID, "--reason", "It failed.", "--operator", "nobody"},
		{"outbox", "skip", entry},
		{"outbox", "skip", entry, "--operator", "nobody"},
		{"runs", "fail", run.ID, "--operator", operator},
		{"runs", "fail", run.ID, "--operator", operator, "--reason", ""},
		{"runs", "fail", run.ID, "--operator", operator, "--reason", "see http://inner.example/trace"},
		{"runs", "fail", run.ID, "--operator", operator, "--reason", "\x00"},
		{"runs", "fail", strings.ToUpper(run.ID), "--operator", operator, "--reason", "It failed."},
	} {
		if got := d.ctl(t, args...).want(t, exitUsage); !strings.HasPrefix(got.err, "runctl: ") || got.out != "" {
			t.Errorf("%q: %q %q", args, got.out, got.err)
		}
	}
	if !same(before, d.Content(t)) {
		t.Error("something was changed")
	}
}

// A deleted run is seen and left alone; one that nobody knows is not found.
func TestDeletedAndUnknownRuns(t *testing.T) {
	t.Parallel()
	d := deskOf(t)
	run := d.In(t, lifecycle.WF2Des, lifecycle.Failed)
	d.Step(t, run, lifecycle.Delete)
	if got := d.ctl(t, "runs", "show", run.ID).want(t, exitDone); !strings.Contains(got.out, "failed (deleted)") {
		t.Errorf("a deleted run is shown as %s", got.out)
	}
	d.as(t, "runs", "cancel", run.ID).want(t, exitRefused)
	const unknown = "01980000-0000-7000-8000-00000000ffff"
	d.ctl(t, "runs", "show", unknown).want(t, exitNotFound)
	d.as(t, "runs", "cancel", unknown).want(t, exitNotFound)
	d.as(t, "outbox", "skip", "4711").want(t, exitNotFound)
	d.ctl(t, "webhook", "send", unknown, "parsed", "--webhook-url", "http://127.0.0.1:1", "--webhook-secrets", d.Worker.Secret).want(t, exitNotFound)
}
