// Command interaction takes people's decisions about a run: confirm or reject, cancel, placement, feedback, delete.
package main

import (
	"context"
	"io"

	"framerun.dev/pkg/app"
)

func main() { app.Main("interaction", run) }

func run(ctx context.Context, lookup func(string) (string, bool), out io.Writer) error {
	env := app.NewEnv(lookup)
	base, tokens := app.ReadBase(env, 512), app.ReadTokens(env)
	if err := env.Err(); err != nil {
		return err
	}
	parts, err := app.Open("interaction", base, out)
	if err != nil {
		return err
	}
	defer parts.Close()
	people, err := parts.People(ctx, tokens)
	if err != nil {
		return err
	}
	s := &server{store: parts.Store, people: people, told: parts.Bus.Told}
	return parts.Serve(ctx, app.Serving{Routes: s.routes()})
}
