// Command query shows runs: one, a list, a timeline, a link to the result. It writes nothing.
package main

import (
	"context"
	"io"

	"framerun.dev/pkg/app"
)

func main() { app.Main("query", run) }

func run(ctx context.Context, lookup func(string) (string, bool), out io.Writer) error {
	env := app.NewEnv(lookup)
	base, tokens, results := app.ReadBase(env, 20_000), app.ReadTokens(env), readResults(env)
	if err := env.Err(); err != nil {
		return err
	}
	parts, err := app.Open("query", base, out)
	if err != nil {
		return err
	}
	defer parts.Close()
	people, err := parts.People(ctx, tokens)
	if err != nil {
		return err
	}
	links, err := results.links(ctx, parts.Log)
	if err != nil {
		return err
	}
	s := newServer(parts.Store, people, links)
	if err := s.listen(parts.Bus); err != nil {
		return err
	}
	return parts.Serve(ctx, app.Serving{Routes: s.routes(), Background: []func(context.Context) error{s.hot.lookOut, s.hot.follow}})
}
