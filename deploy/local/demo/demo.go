// Package demo plays the suite's main job as a Figma plugin would do it, on frames as they stand in real files, so that a person can
// watch it and a machine can tell whether it works.
//
// Everything goes through the gateway with the plugin's token. Workers are not played here: a stack with the scripted worker is
// needed.
package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"framerun.dev/deploy/local/stack"
)

// patience is how long all stories together may take.
const patience = 90 * time.Second

// Run plays every story on the stack at a and writes down what it sees. The first surprise ends it, with an error that says what was
// expected and what came. Runs that an earlier demo left open on its nodes are cancelled.
func Run(ctx context.Context, out io.Writer, a stack.Address) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the stories took longer than %s", patience))
	defer cancel()
	all, err := readFrames()
	if err != nil {
		return err
	}
	d := &demo{
		page:   newPage(out),
		plugin: plugin{origin: a.Gateway, token: a.Tokens.Plugin, http: &http.Client{}},
		sqs:    a.SQS,
		seed:   a.Seed,
		frames: all,
	}
	return d.tell(ctx)
}

// demo is one telling of the stories.
type demo struct {
	page   *page
	plugin plugin
	sqs    string // where the local SQS shows what it has accepted
	seed   stack.Seed
	frames frames
	runs   []*run    // all that were created, in order
	began  time.Time // the story that is being told
}

func (d *demo) tell(ctx context.Context) error {
	for _, story := range stories {
		d.page.title(story.title)
		d.began = time.Now()
		if err := story.play(d, ctx); err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
			}
			return fmt.Errorf("demo: %s: %w", story.title, err)
		}
	}
	d.printRuns()
	return nil
}

// step is one thing that a person would see happen.
type step func(ctx context.Context) error

// play does one step after the other, up to the first surprise.
func play(ctx context.Context, steps ...step) error {
	for _, do := range steps {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// each does the same step for every run before the next step begins.
func each(runs []*run, do func(*run) step) step {
	return func(ctx context.Context) error {
		for _, r := range runs {
			if err := do(r)(ctx); err != nil {
				return fmt.Errorf("%q: %w", r.frame.Name, err)
			}
		}
		return nil
	}
}

// surprise is what ends the demo: something other than expected came.
func surprise(where, expected, came string) error {
	return fmt.Errorf("%s: expected %s, but %s came", where, expected, came)
}
