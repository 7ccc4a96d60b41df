// Command status hears the AI workers: it takes the signed ai-status webhook and is the only service that writes completed and failed. Where
// nobody can be heard any more (a silent worker, a job that nobody was given or has done) it speaks in the worker's place. It lands
// completed designs in the platform's registry, and carries its public events to the feed.
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"framerun.dev/pkg/app"
	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/lifecycle"
)

func main() { app.Main("status", run) }

func run(ctx context.Context, lookup func(string) (string, bool), out io.Writer) error {
	env := app.NewEnv(lookup)
	base := app.ReadBase(env, 512)
	account := env.Required("SERVICE_ACCOUNT_SUB") // the cognito_sub in whose name workers' words are stored
	deadlines, dry := readDeadlines(env), env.Bool("REAPER_DRY_RUN", false)
	letters := readDeadLetters(env)
	webhooks, err := auth.NewWebhooks(env.List("WEBHOOK_SECRETS"), time.Now)
	if err != nil {
		env.Refuse("WEBHOOK_SECRETS", "must hold one or more secrets whsec_…, with commas between them: "+err.Error())
	}
	outside := readOutside(env)
	if err := env.Err(); err != nil {
		return err
	}
	base.Effects.Designs = outside.registry != nil
	defer outside.close(context.WithoutCancel(ctx))
	parts, err := app.Open("status", base, out)
	if err != nil {
		return err
	}
	defer parts.Close()
	wake, err := parts.Bus.HearStranded()
	if err != nil {
		return err
	}
	s := &server{
		store: parts.Store, webhooks: webhooks, nerve: parts.Bus,
		account: lifecycle.Actor{Voice: lifecycle.Backend, Name: account}, pulse: pulse{deadlines: deadlines},
		documents: outside.reader(),
	}
	announcing, err := parts.Announcing(nil)
	if err != nil {
		return err
	}
	background := []func(context.Context) error{
		announcing,
		func(ctx context.Context) error { return s.failStranded(ctx, wake, parts.Log) },
	}
	if deadlines.Any() {
		background = append(background, newReaper(s, deadlines, dry, parts.Log, parts.Metrics).run)
	}
	if outside.registry != nil {
		background = append(background, land(parts, outside.registry))
	}
	watches, err := s.watchDeadLetters(ctx, letters, parts)
	if err != nil {
		return err
	}
	return parts.Serve(ctx, app.Serving{
		Routes: s.routes(), NoCORS: true,
		Checks:     append(outside.checks(), app.Check{Name: "service_account", Critical: true, Ask: s.accountKnown}),
		Background: append(background, watches...),
	})
}

// accountKnown asks whether the platform knows the service account: the audit columns refer to its users, so without it no
// worker's word could be stored.
func (s *server) accountKnown(ctx context.Context) error {
	known, err := s.store.KnowsUser(ctx, s.account.Name)
	if err == nil && !known {
		err = fmt.Errorf("the platform's user table does not hold SERVICE_ACCOUNT_SUB")
	}
	return err
}
