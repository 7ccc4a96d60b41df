package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"framerun.dev/pkg/store"
)

type stuckCommand struct {
	OlderThan time.Duration `default:"15m" help:"Only runs that have not changed, and whose worker has told no progress, for at least so long, such as 90s, 15m or 24h."`
	Limit     int           `default:"50" help:"How many at most."`
}

func (stuckCommand) Help() string {
	return `The longest idle come first. A run that waits for the designer is not broken: she may be at lunch. WAITS FOR says whose turn it is:

    designer         to confirm or reject what was parsed
    worker           a worker was sent the job and has not answered
    relay            the job is still in the outbox, and nothing was said against it: is service intake running?
    queue            SQS does not take the job; it is tried again and again by itself
    operator         the job can never be delivered and was set aside
    job_never_left   somebody skipped the job, and the run waits for it still

Then look at one with runctl runs show ID: it says what you can do.

Examples:

    runctl runs stuck --older-than 1m
    runctl runs stuck --older-than 2h -o json | jq -r '.items[] | select(.waitsFor == "worker") | .run.id'`
}

// idleView is a run that does not move.
type idleView struct {
	Run         runView `json:"run"`
	IdleSeconds int64   `json:"idleSeconds"`
	diagnosis
	Last   *lineView   `json:"last"`
	Outbox []entryView `json:"outbox"`
}

func idleOf(i store.Idle) idleView {
	v := idleView{Run: viewOf(i.Run), IdleSeconds: int64(i.For / time.Second), diagnosis: diagnose(i.Run, i.Told), Outbox: items(i.Told, entryOf).Items}
	if i.Last != nil {
		v.Last = new(lineOf(*i.Last))
	}
	return v
}

func (c stuckCommand) Run(ctx context.Context, s *hand) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if c.OlderThan < 0 {
		return usage("--older-than must not be negative")
	}
	if err := checkLimit(c.Limit); err != nil {
		return err
	}
	db, err := s.store()
	if err != nil {
		return err
	}
	idle, err := db.Idle(ctx, c.OlderThan, c.Limit)
	if err != nil {
		return err
	}
	return s.show(items(idle, idleOf), func(w io.Writer) { c.tell(w, idle) })
}

func (c stuckCommand) tell(w io.Writer, idle []store.Idle) {
	if len(idle) == 0 {
		fmt.Fprintf(w, "No open run has been idle for %s.\n", c.OlderThan)
		return
	}
	rows := make([][]string, len(idle))
	for i, one := range idle {
		last := "(nothing)"
		if e := one.Last; e != nil {
			last = fmt.Sprintf("%s by %s", e.What, clip(e.By.Name, 24))
		}
		rows[i] = []string{one.Run.ID, string(one.Run.Kind), string(one.Run.State), strconv.Itoa(one.Run.Attempt), long(one.For), last,
			string(diagnose(one.Run, one.Told).WaitsFor)}
	}
	table(w, []string{"ID", "KIND", "STATE", "ATTEMPT", "IDLE", "LAST", "WAITS FOR"}, rows)
	fmt.Fprintln(w, "\nrunctl runs show ID says why, and what can be done.")
}
