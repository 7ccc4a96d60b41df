package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/cloud"
	"framerun.dev/pkg/events"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

// hand is one command's way to the outside: it opens what the command asks for, when it asks, by the flags or the stack's file.
type hand struct {
	globals
	streams

	local  *stack // the local suite, once looked for
	sought bool
	opened *store.Store
}

func (s *hand) close() {
	if s.opened != nil {
		s.opened.Close()
	}
}

// bounded is ctx for the time that a command may take.
func (s *hand) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.Timeout)
}

// store opens the database.
func (s *hand) store() (*store.Store, error) {
	if s.opened != nil {
		return s.opened, nil
	}
	address, err := s.pick(s.DatabaseURL, "the database", "--database-url (DATABASE_URL)", func(l *stack) string { return l.Postgres })
	if err != nil {
		return nil, err
	}
	s.opened, err = store.Open(address, store.Options{Pool: 2})
	if err != nil {
		return nil, usage("%v", err)
	}
	return s.opened, nil
}

// pick is an address from its flag, or from the local suite.
func (s *hand) pick(given, what, flag string, ofStack func(*stack) string) (string, error) {
	if given != "" {
		return given, nil
	}
	local, err := s.stack()
	if err != nil {
		return "", err
	}
	if local == nil || ofStack(local) == "" {
		return "", usage("where is %s? Give %s, or --stack for a local suite (`make up` starts one)", what, flag)
	}
	return ofStack(local), nil
}

// bus connects to NATS. A server that is down is told by the bus's own Check.
func (s *hand) bus() (*events.Bus, error) {
	address, err := s.pick(s.NATSURL, "NATS", "--nats-url (NATS_URL)", func(l *stack) string { return l.NATS })
	if err != nil {
		return nil, err
	}
	return events.Connect(address, "runctl", slog.New(slog.DiscardHandler))
}

// told says after a change what interaction says, so that the services look at once. They look by themselves a second later, so what
// goes wrong here is only worth a warning.
func (s *hand) told(run lifecycle.Ref) {
	bus, err := s.bus()
	if err == nil {
		defer bus.Close()
		if err = bus.Check(); err == nil {
			bus.Told(run)
			return
		}
	}
	fmt.Fprintf(s.err, "runctl: stored, but not hinted: the services notice within seconds (%s)\n", sentence(err))
}

// queues finds the workers' queues and a client for them.
func (s *hand) queues(ctx context.Context) (*sqs.Client, map[string]string, error) {
	if len(s.QueueURLs) > 0 {
		config, err := cloud.Config(ctx, slog.New(slog.DiscardHandler))
		return sqs.NewFromConfig(config), s.QueueURLs, err
	}
	local, err := s.stack()
	if err != nil {
		return nil, nil, err
	}
	if local == nil {
		return nil, nil, usage("where are the queues? Give --queue-urls (SQS_QUEUE_URLS), or --stack for a local suite")
	}
	client := sqs.NewFromConfig(aws.Config{
		Region: local.AWS.Region, BaseEndpoint: &local.SQS,
		Credentials: credentials.NewStaticCredentialsProvider(local.AWS.AccessKeyID, local.AWS.SecretAccessKey, ""),
	})
	return client, local.Queues, nil
}

// secrets are those that webhooks are signed with.
func (s *hand) secrets() ([]string, error) {
	if len(s.WebhookSecrets) > 0 {
		return s.WebhookSecrets, nil
	}
	secret, err := s.pick("", "the webhook's secret", "--webhook-secrets (WEBHOOK_SECRETS)", func(l *stack) string { return l.Webhook.Secret })
	return []string{secret}, err
}

// operator is who changes something. The audit columns of wf2des refer to the platform's users, so it must be one of them; a code2wf run's
// timeline shall name somebody who can be found as well.
func (s *hand) operator(ctx context.Context, as asOperator) (lifecycle.Actor, error) {
	by := lifecycle.Actor{Voice: lifecycle.Backend, Name: as.Operator}
	if as.Operator == "" && as.DryRun {
		return by, nil
	}
	if as.Operator == "" {
		return by, usage("who are you? Give --operator (RUNCTL_OPERATOR), your cognito subject: it stands in the timeline of what you change")
	}
	db, err := s.store()
	if err != nil {
		return by, err
	}
	known, err := db.KnowsUser(ctx, as.Operator)
	if err == nil && !known {
		err = usage("the platform's user table does not know the operator %q: give the cognito_sub of a user that it holds", as.Operator)
	}
	return by, err
}

// find reads a run of either kind by its id.
func (s *hand) find(ctx context.Context, id string) (lifecycle.Run, error) {
	if err := checkID(id); err != nil {
		return lifecycle.Run{}, err
	}
	db, err := s.store()
	if err != nil {
		return lifecycle.Run{}, err
	}
	for _, kind := range lifecycle.Kinds {
		run, err := db.RunOfAnyTenant(ctx, lifecycle.Ref{Kind: kind, ID: id})
		if !errors.Is(err, lifecycle.ErrNotFound) {
			return run, err
		}
	}
	return lifecycle.Run{}, fmt.Errorf("%w with the id %s", lifecycle.ErrNotFound, id)
}

// signer signs and explains webhooks.
func (s *hand) signer() (*auth.Webhooks, error) {
	secrets, err := s.secrets()
	if err != nil {
		return nil, err
	}
	w, err := auth.NewWebhooks(secrets, time.Now)
	if err != nil {
		return nil, usage("%v", err)
	}
	return w, nil
}
