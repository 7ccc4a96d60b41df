package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

type outboxCommand struct {
	List  entriesCommand `cmd:"" help:"List what waits, and what was set aside."`
	Retry retryCommand   `cmd:"" help:"Give an entry that was set aside back to the relay, due at once."`
	Skip  skipCommand    `cmd:"" help:"Let an entry go: it will never be told."`
}

type entriesCommand struct {
	State       []string `enum:"pending,set_aside,skipped" default:"pending,set_aside" help:"Only these states, with commas between them."`
	Destination string   `enum:",jobs,events,documents,designs" default:"" help:"Only those for jobs (to SQS), events (to the public feed), and so on."`
	Of          string   `name:"run" placeholder:"ID" help:"Only those of this run."`
	Limit       int      `default:"50" help:"How many at most."`
}

func (entriesCommand) Help() string {
	return `An entry is written in the transaction of the change that it tells of, and is gone as soon as it is told. So what you see here has not been told (yet):

    pending     the service that carries it (intake jobs, interaction documents, status designs, every service its own events) does so when it is DUE, again and
                again, oldest first; what it has just written itself is under way from the beginning: one of the TRIES
    set_aside   its destination said that it will never take it; of a job that waits, service status has failed the run
    skipped     nobody wanted it any more (the run had ended), or an operator let it go

Examples:

    runctl outbox list
    runctl outbox list --state set_aside -o json
    runctl outbox list --run 01980000-0000-7000-8000-000000000001 --state pending,set_aside,skipped`
}

func (c entriesCommand) Run(ctx context.Context, s *hand) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if err := checkLimit(c.Limit); err != nil {
		return err
	}
	f := store.EntryFilter{Destination: c.Destination}
	for _, state := range c.State {
		f.States = append(f.States, store.EntryState(state))
	}
	if c.Of != "" {
		if err := checkID(c.Of); err != nil {
			return err
		}
		f.RunIDs = []string{c.Of}
	}
	db, err := s.store()
	if err != nil {
		return err
	}
	entries, err := db.Entries(ctx, f, c.Limit)
	if err != nil {
		return err
	}
	return s.show(items(entries, entryOf), func(w io.Writer) {
		if len(entries) == 0 {
			fmt.Fprintln(w, "No entry: nothing of what you asked for waits. What was skipped is listed with --state skipped only.")
			return
		}
		tellEntries(w, entries)
	})
}

func tellEntries(w io.Writer, entries []store.Entry) {
	rows := make([][]string, len(entries))
	for i, e := range entries {
		rows[i] = []string{number(e.ID), e.Says(), string(e.Run.Kind) + " " + e.Run.ID, strconv.Itoa(e.Attempt), string(e.State), strconv.Itoa(e.Tries),
			stamp(e.CreatedAt), stamp(e.DueAt), clip(e.LastError, 100)}
	}
	table(w, []string{"ENTRY", "TELLS", "RUN", "ATTEMPT", "STATE", "TRIES", "WRITTEN", "DUE", "LAST ERROR"}, rows)
}

type retryCommand struct {
	Entry int64 `arg:"" help:"The entry's number, from runctl outbox list."`
	asOperator
}

func (retryCommand) Help() string {
	return `For entries whose destination can take them now: a queue that was made meanwhile, a limit that was raised. An entry that is pending needs no hand. A job of a run that has ended, or is at another attempt, is refused: nobody wants it.

Examples:

    runctl outbox retry 4711 --operator 7a1f…`
}

func (c retryCommand) Run(ctx context.Context, s *hand) error {
	return s.intervene(ctx, store.RetryEntry, c.Entry, c.asOperator)
}

type skipCommand struct {
	Entry int64 `arg:"" help:"The entry's number, from runctl outbox list."`
	asOperator
}

func (skipCommand) Help() string {
	return `For an entry that does harm where it goes, or that nobody can mend. Mind what it means: an event that is skipped is missing in the public feed; a job that is skipped leaves its open run waiting for ever, so free the run afterwards (runctl runs requeue, fail or cancel).

Examples:

    runctl outbox skip 4711 --dry-run
    runctl outbox skip 4711 --operator 7a1f…`
}

func (c skipCommand) Run(ctx context.Context, s *hand) error {
	return s.intervene(ctx, store.SkipEntry, c.Entry, c.asOperator)
}

// intervened is what was done to an entry, or would be.
type intervened struct {
	Intervention store.Intervention `json:"intervention"`
	DryRun       bool               `json:"dryRun"`
	RunState     lifecycle.State    `json:"runState"`
	Entry        entryView          `json:"entry"` // as it is afterwards; with dryRun, as it is now
}

func (s *hand) intervene(ctx context.Context, i store.Intervention, id int64, as asOperator) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	db, err := s.store()
	if err != nil {
		return err
	}
	entry, err := db.Entry(ctx, id)
	if err != nil {
		return err
	}
	by, err := s.operator(ctx, as)
	if err != nil {
		return err
	}
	run, err := db.RunOfAnyTenant(ctx, entry.Run)
	if err != nil {
		return err
	}
	if err := i.On(entry, run); err != nil {
		return err
	}
	if !as.DryRun {
		if entry, err = db.Intervene(ctx, i, id, by); err != nil {
			return err
		}
		s.told(run.Ref)
	}
	return s.show(intervened{i, as.DryRun, run.State, entryOf(entry)}, func(w io.Writer) { tellIntervention(w, i, entry, run, as.DryRun) })
}

func tellIntervention(w io.Writer, i store.Intervention, e store.Entry, run lifecycle.Run, dryRun bool) {
	verb := map[store.Intervention]string{store.RetryEntry: "goes out again", store.SkipEntry: "will never be told"}[i]
	fmt.Fprintf(w, "%s: entry %d (%s of run %s) %s", i, e.ID, e.Says(), e.Run.ID, verb)
	if dryRun {
		fmt.Fprint(w, " (dry run: nothing was changed)")
	}
	fmt.Fprintln(w)
	if i == store.SkipEntry && e.Stage != lifecycle.NoJob && !run.Ended() && e.Attempt == run.Attempt {
		fmt.Fprintln(w, "The run is open and waits for this job. Free it:")
		for _, line := range freeing(run) {
			fmt.Fprintln(w, "    "+line)
		}
	}
}
