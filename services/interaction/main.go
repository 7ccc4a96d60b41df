// Command interaction takes people's decisions about a run: confirm or reject, cancel, placement, feedback, delete. It carries those
// about what a worker parsed to the result document, and its public events to the feed.
package main

import (
	"context"
	"io"

	"framerun.dev/pkg/app"
)

func main() { app.Main("interaction", run) }

func run(ctx context.Context, lookup func(string) (string, bool), out io.Writer) error {
	env := app.NewEnv(lookup)
	base, tokens, documents := app.ReadBase(env, 512), app.ReadTokens(env), readDocuments(env)
	if err := env.Err(); err != nil {
		return err
	}
	base.Effects.Documents = documents != nil
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
	announcing, err := parts.Announcing(nil)
	if err != nil {
		return err
	}
	serving := app.Serving{Routes: s.routes(), Background: []func(context.Context) error{announcing}, Checks: []app.Check{{Name: "documentdb", Off: true}}}
	if documents != nil {
		defer documents.Close(context.WithoutCancel(ctx))
		serving.Checks = []app.Check{{Name: "documentdb", Ask: documents.Ping}}
		serving.Background = append(serving.Background, tell(parts, documents))
	}
	return parts.Serve(ctx, serving)
}
