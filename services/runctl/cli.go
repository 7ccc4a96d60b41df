package main

import "time"

// cli is the command line. Kong reads it from the tags; the commands are in files of their own.
type cli struct {
	globals

	Runs    runsCommand    `cmd:"" help:"Find runs, understand them, and free those that are stuck."`
	Outbox  outboxCommand  `cmd:"" help:"What must still be told to workers and to the public feed."`
	Webhook webhookCommand `cmd:"" help:"The workers' webhook: send a word, sign one, find out why one is refused."`
	Queue   queueCommand   `cmd:"" help:"The workers' queues (SQS)."`
	Events  eventsCommand  `cmd:"" help:"The public feed of what happened to runs (NATS JetStream)."`
	Token   tokenCommand   `cmd:"" help:"The tokens that people sign in with."`
}

// globals are the flags that every command takes.
type globals struct {
	Output string `short:"o" enum:"table,json" default:"table" help:"table for people, json for scripts (members do not change)."`
	Stack  string `group:"Where things are:" placeholder:"FILE" help:"stack.json of a local suite: every address, token and secret is taken from it. Without this flag deploy/local/.state/stack.json is used if it is there and none of the addresses below is given."`

	DatabaseURL    string            `group:"Where things are:" name:"database-url" env:"DATABASE_URL" placeholder:"postgres://…" help:"PostgreSQL."`
	NATSURL        string            `group:"Where things are:" name:"nats-url" env:"NATS_URL" placeholder:"nats://…" help:"NATS: the feed, and hints after a change. Without it the services notice a change about a second later."`
	QueueURLs      map[string]string `group:"Where things are:" name:"queue-urls" env:"SQS_QUEUE_URLS" mapsep:"," placeholder:"wf2des=URL,…" help:"The workers' queues. Region and credentials are the AWS SDK's own (AWS_REGION, AWS_PROFILE, …)."`
	WebhookURL     string            `group:"Where things are:" name:"webhook-url" env:"STATUS_URL" placeholder:"https://…" help:"Where workers report: /v1/ai-status of service status."`
	WebhookSecrets []string          `group:"Where things are:" name:"webhook-secrets" env:"WEBHOOK_SECRETS" placeholder:"whsec_…" help:"The secrets of the webhook, with commas between them; the first one signs. Better set in the environment: other people on the machine can read flags."`
	Issuer         string            `group:"Where things are:" name:"issuer" env:"COGNITO_ISSUER" placeholder:"https://…" help:"The user pool that tokens are checked against."`

	Timeout time.Duration `default:"20s" help:"How long a command may take at most (events tail --follow: no limit)."`
}

// asOperator is for commands that change something.
type asOperator struct {
	Operator string `env:"RUNCTL_OPERATOR" placeholder:"SUBJECT" help:"Who you are: your cognito subject, as the platform's user table knows it. It stands in the timeline. In the local suite there is user-api."`
	DryRun   bool   `help:"Say what would happen, and change nothing."`
}

const description = `The operator's hand on Framerun.

A run is one AI generation that a designer asked for: a row of the table wf2des (a wireframe turned into a design, or back) or code2wf (a page's code turned into a wireframe). It is open until it is completed, failed, rejected or cancelled; an open wf2des run blocks its Figma node.

    wf2des    parsing → awaiting_confirm → assembling → completed
    code2wf   processing → completed

In parsing, assembling and processing it waits for a worker, who gets a job over SQS; the job waits in the table outbox until service intake has handed it to SQS. In awaiting_confirm it waits for the designer.

To free a run that is stuck:

    runctl runs stuck --older-than 15m       which runs do not move, and what each waits for
    runctl runs show ID                      everything about one, and what you can do
    runctl runs requeue ID                   send its job out again; the old worker is shut out (wf2des)
    runctl runs fail ID --reason "…"         end it; the designer reads the reason and can start again
    runctl runs cancel ID                    call it off (wf2des)

Changes want --operator SUBJECT (or RUNCTL_OPERATOR) and take --dry-run.

Exit codes: 0 done · 1 failed · 2 the command line makes no sense · 3 no such run, entry, queue or feed · 4 refused: the state of things does not allow it, nothing was changed · 5 something cannot be reached, nothing was changed, try again · 6 the connection broke while a change was stored: look before you try again.`
