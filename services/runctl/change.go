package main

import (
	"context"
	"fmt"
	"io"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/safetext"
)

type requeueCommand struct {
	ID string `arg:"" help:"The run's id."`
	asOperator
}

func (requeueCommand) Help() string {
	return `The attempt rises by one and the job goes out again. Whatever the old worker still says is told "superseded" and changes nothing. It is for wf2des runs in parsing or assembling; while it is the designer's turn there is no job. A code2wf run is never tried again: end it with runctl runs fail, and the designer starts anew.

Examples:

    runctl runs requeue 01980000-0000-7000-8000-000000000001 --dry-run
    runctl runs requeue 01980000-0000-7000-8000-000000000001 --operator 7a1f…`
}

func (c requeueCommand) Run(ctx context.Context, s *hand) error {
	return s.change(ctx, c.ID, c.asOperator, lifecycle.Command{Verb: lifecycle.Requeue})
}

type failCommand struct {
	ID     string `arg:"" help:"The run's id."`
	Reason string `required:"" placeholder:"SENTENCE" help:"What the designer reads. No addresses, keys, paths or traces."`
	asOperator
}

func (failCommand) Help() string {
	return `The run ends, its node is free at once, and a worker who comes later is told so. It is for open runs of both kinds.

Examples:

    runctl runs fail 01980000-0000-7000-8000-000000000001 --operator 7a1f… --reason "The generation was stopped. Please start it again."`
}

// longest is the length of a reason in code points, as the workers' texts have.
const longest = 1000

func (c failCommand) Run(ctx context.Context, s *hand) error {
	reason, fit := safetext.Clean(c.Reason, longest)
	if !fit {
		return usage("--reason is shown to the designer and must be plain prose: no addresses, keys, paths, code or traces")
	}
	return s.change(ctx, c.ID, c.asOperator, lifecycle.Command{Verb: lifecycle.Fail, Message: reason})
}

type cancelCommand struct {
	ID string `arg:"" help:"The run's id."`
	asOperator
}

func (cancelCommand) Help() string {
	return `The same as the designer's own cancel: the run ends and its node is free at once. It is for open wf2des runs; end a code2wf run with runctl runs fail. A run that is cancelled already stays as it is, and that is no error.

Examples:

    runctl runs cancel 01980000-0000-7000-8000-000000000001 --operator 7a1f…`
}

func (c cancelCommand) Run(ctx context.Context, s *hand) error {
	return s.change(ctx, c.ID, c.asOperator, lifecycle.Command{Verb: lifecycle.Cancel})
}

// changed is what a change has done, or would do.
type changed struct {
	Verb    lifecycle.Verb    `json:"verb"`
	DryRun  bool              `json:"dryRun"`
	Outcome lifecycle.Outcome `json:"outcome"` // applied; unchanged: it is so already
	From    lifecycle.State   `json:"from"`
	Job     lifecycle.Stage   `json:"job,omitzero"` // goes out to a worker
	Run     runView           `json:"run"`          // as it is afterwards
}

// change carries cmd out on a run in the operator's name. It is decided on the run as it is read first, and once more, under the row's
// lock, when it is stored. The hint comes after the commit: if this process dies in between, the services look by themselves.
func (s *hand) change(ctx context.Context, id string, as asOperator, cmd lifecycle.Command) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	run, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	if cmd.By, err = s.operator(ctx, as); err != nil {
		return err
	}
	cmd.Run, cmd.Attempt = run.Ref, run.Attempt
	decided, err := foresee(run, cmd)
	if err != nil {
		return err
	}
	told := changed{Verb: cmd.Verb, DryRun: as.DryRun, Outcome: decided.Outcome, From: run.State, Job: decided.Job, Run: viewOf(decided.Next)}
	if !as.DryRun {
		applied, err := s.opened.Apply(ctx, cmd)
		if err != nil {
			return err
		}
		if told.Outcome, told.Run = applied.Outcome, viewOf(applied.Run); applied.Outcome == lifecycle.Applied {
			s.told(cmd.Run)
		}
	}
	if err := overtaken(told); err != nil {
		return err
	}
	return s.show(told, func(w io.Writer) { fmt.Fprintln(w, told.sentence()) })
}

// foresee decides cmd on the run as it was read.
func foresee(run lifecycle.Run, cmd lifecycle.Command) (lifecycle.Decision, error) {
	switch {
	case run.Kind == lifecycle.Code2WF && cmd.Verb != lifecycle.Fail:
		return lifecycle.Decision{}, refused("a code2wf run knows no %s; end it with `runctl runs fail`, and the designer starts anew", cmd.Verb)
	case run.DeletedAt != nil:
		return lifecycle.Decision{}, refused("the run was deleted at %s", stamp(*run.DeletedAt))
	case run.Ended() && cmd.Verb == lifecycle.Fail:
		return lifecycle.Decision{}, refused("the run has ended already: %s", run.State)
	}
	return lifecycle.Decide(run, cmd, run.UpdatedAt.Add(1))
}

// overtaken tells of a run that moved on between the look and the change. The timeline says so as well.
func overtaken(c changed) error {
	switch c.Outcome {
	case lifecycle.Applied, lifecycle.Unchanged:
		return nil
	}
	return refused("the run moved on in this moment and is %s (%s)", c.Run.State, c.Outcome)
}

func (c changed) sentence() string {
	if c.Outcome == lifecycle.Unchanged {
		return fmt.Sprintf("nothing to do: run %s is %s already", c.Run.ID, c.Run.State)
	}
	verb := "is now"
	if c.DryRun {
		verb = "would be"
	}
	text := fmt.Sprintf("%s: run %s was %s and %s %s, attempt %d", c.Verb, c.Run.ID, c.From, verb, c.Run.State, c.Run.Attempt)
	if c.Job != lifecycle.NoJob {
		text += fmt.Sprintf("; the job %q goes out to a worker", c.Job)
	}
	if c.DryRun {
		text += " (dry run: nothing was changed)"
	}
	return text
}
