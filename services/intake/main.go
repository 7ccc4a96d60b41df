// Command intake takes requests for new runs, and carries jobs to SQS and its public events to the feed. It is the only sender to SQS.
package main

import (
	"context"
	"io"

	"framerun.dev/pkg/app"
)

func main() { app.Main("intake", run) }

func run(ctx context.Context, lookup func(string) (string, bool), out io.Writer) error {
	env := app.NewEnv(lookup)
	base, tokens, workers := app.ReadBase(env, 512), app.ReadTokens(env), readWorkers(env)
	limits, keep := readLimits(env), readRetention(env)
	if err := env.Err(); err != nil {
		return err
	}
	parts, err := app.Open("intake", base, out)
	if err != nil {
		return err
	}
	defer parts.Close()
	people, err := parts.People(ctx, tokens)
	if err != nil {
		return err
	}
	queues, err := workers.queues(ctx, parts.Log)
	if err != nil {
		return err
	}
	lanes, err := carry(parts, queues)
	if err != nil {
		return err
	}
	s := &server{store: parts.Store, people: people, limits: limits}
	background := append(lanes, s.forgetKeys(parts.Log))
	if keep > 0 {
		background = append(background, s.letGo(keep, parts.Log))
	}
	return parts.Serve(ctx, app.Serving{Routes: s.routes(), Background: background})
}
