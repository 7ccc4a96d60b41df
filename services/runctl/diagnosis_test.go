package main

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

// entries are the numbers of what is told of the run, oldest first: its first job, then its first event.
func (d *desk) entries(t *testing.T, run lifecycle.Run) []string {
	t.Helper()
	all, err := d.Store.Entries(t.Context(), store.EntryFilter{RunIDs: []string{run.ID}}, 100)
	if err != nil {
		t.Fatal(err)
	}
	numbers := make([]string, len(all))
	for i, e := range all {
		numbers[i] = strconv.FormatInt(e.ID, 10)
	}
	return numbers
}

// What an operator is told of each sort of stuck run; and every command that is advised must work. Catches a wrong diagnosis, and advice
// that the state refuses.
func TestStuckRunsAreExplained(t *testing.T) {
	t.Parallel()
	const job = `UPDATE outbox SET %s WHERE destination = 'jobs'`
	for _, c := range []struct {
		name    string
		kind    lifecycle.Kind
		state   lifecycle.State
		arrange string
		waits   wait
		advice  []string
	}{
		{"the relay is down", lifecycle.WF2Des, lifecycle.Parsing, "", forRelay, []string{"requeue", "fail", "cancel"}},
		{"SQS is down", lifecycle.WF2Des, lifecycle.Parsing, "tries = 7, last_error = 'throttled'", forQueue, []string{"requeue", "fail", "cancel"}},
		{"the job is poison", lifecycle.Code2WF, lifecycle.Processing, "state = 'set_aside', settled_at = now(), last_error = 'too long'", forOperator, []string{"retry", "fail"}},
		{"the job was skipped", lifecycle.Code2WF, lifecycle.Processing, "state = 'skipped', settled_at = now()", jobSkipped, []string{"fail"}},
		{"the designer is away", lifecycle.WF2Des, lifecycle.AwaitingConfirm, "", forDesigner, []string{"fail", "cancel"}},
		{"the second job waits", lifecycle.WF2Des, lifecycle.Assembling, "", forRelay, []string{"requeue", "fail", "cancel"}},
		{"it has ended", lifecycle.WF2Des, lifecycle.Cancelled, "", forNobody, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := deskOf(t)
			run := d.In(t, c.kind, c.state)
			if c.arrange != "" {
				d.SQL.MustExec(strings.Replace(job, "%s", c.arrange, 1))
			}
			d.explained(t, run, c.waits, c.advice)
		})
	}
	t.Run("the worker is silent", func(t *testing.T) {
		t.Parallel()
		d := deskOf(t)
		run := d.In(t, lifecycle.WF2Des, lifecycle.Parsing)
		d.SQL.MustExec(`DELETE FROM outbox`)
		d.explained(t, run, forWorker, []string{"tail", "requeue", "fail", "cancel"})
	})
}

func (d *desk) explained(t *testing.T, run lifecycle.Run, waits wait, advice []string) {
	t.Helper()
	shown := d.ctl(t, "runs", "show", run.ID, "-o", "json").want(t, exitDone).json(t)
	if shown["waitsFor"] != string(waits) || shown["says"] == "" {
		t.Errorf("waits for %v: %v; want %s", shown["waitsFor"], shown["says"], waits)
	}
	var verbs []string
	try, _ := shown["try"].([]any)
	for _, line := range try {
		words := strings.Fields(line.(string))
		verbs = append(verbs, words[2])
		if words[2] == "tail" {
			continue // its queue is not here
		}
		d.ctl(t, append(reasonable(words[1:]), "--dry-run")...).want(t, exitDone)
	}
	if !slices.Equal(verbs, advice) {
		t.Errorf("advised are %v, want %v", verbs, advice)
	}
	found := d.ctl(t, "runs", "stuck", "--older-than", "0s", "-o", "json").want(t, exitDone).json(t)["items"].([]any)
	if len(found) != b2i(waits != forNobody) {
		t.Fatalf("%d runs are stuck", len(found))
	}
	if len(found) == 1 && found[0].(map[string]any)["waitsFor"] != string(waits) {
		t.Errorf("the list says that it waits for %v", found[0].(map[string]any)["waitsFor"])
	}
}

// reasonable replaces what a person has to fill in.
func reasonable(words []string) []string {
	var filled []string
	for _, word := range words {
		switch word {
		case `"…"`:
			word = "It failed."
		case "YOU":
			word = operator
		}
		filled = append(filled, word)
	}
	return filled
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Catches a list that prints another person's control characters to the terminal, or a table that hides the run.
func TestTables(t *testing.T) {
	t.Parallel()
	d := deskOf(t)
	run := d.In(t, lifecycle.WF2Des, lifecycle.Parsing, func(r *lifecycle.Run) { r.ScreenID = "evil\x1b[2J" })
	d.SQL.MustExec(`UPDATE outbox SET last_error = E'bad\x1b[2J'`)
	for _, args := range [][]string{
		{"runs", "list"}, {"runs", "list", "--state", "open", "--kind", "wf2des", "--organization", "1", "--project", "1"}, {"runs", "show", run.ID},
		{"runs", "stuck", "--older-than", "0s"}, {"outbox", "list"}, {"outbox", "list", "--run", run.ID, "--destination", "jobs", "--state", "pending"},
	} {
		got := d.ctl(t, args...).want(t, exitDone)
		if !strings.Contains(got.out, run.ID) || strings.Contains(got.out, "\x1b") {
			t.Errorf("%v: %q", args, got.out)
		}
	}
	for _, args := range [][]string{{"runs", "list", "--state", "completed"}, {"runs", "list", "--kind", "code2wf"}, {"runs", "list", "--before", run.ID},
		{"runs", "stuck"}, {"runs", "list", "--organization", "2"}, {"outbox", "list", "--state", "skipped"}} {
		if got := d.ctl(t, args...).want(t, exitDone); strings.Contains(got.out, run.ID) {
			t.Errorf("%v: %q", args, got.out)
		}
	}
	for _, args := range [][]string{{"runs", "list", "--limit", "0"}, {"runs", "list", "--state", "lost"}, {"runs", "list", "--before", "x"}, {"runs", "stuck", "--older-than", "-1s"}} {
		d.ctl(t, args...).want(t, exitUsage)
	}
}
