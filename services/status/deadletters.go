package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/prometheus/client_golang/prometheus"

	"framerun.dev/pkg/app"
	"framerun.dev/pkg/cloud"
	"framerun.dev/pkg/jobs"
	"framerun.dev/pkg/lifecycle"
)

const (
	// lettersRest is how long a queue that cannot be read is left in peace.
	lettersRest = 5 * time.Second
	// letterLeft is how long a letter that says nothing to us is out of the way before it is looked at again. It stays in its queue for
	// as long as that keeps messages, so that an operator can see it.
	letterLeft = time.Hour
)

// readDeadLetters reads SQS_DEAD_LETTER_URLS: the dead letter queues behind the job queues, none if they are not to be watched.
func readDeadLetters(e *app.Env) []string {
	urls := e.List("SQS_DEAD_LETTER_URLS")
	for _, address := range urls {
		if u, err := url.Parse(address); err != nil || u.Host == "" {
			e.Refuse("SQS_DEAD_LETTER_URLS", "must hold the URLs of queues with commas between them, such as "+
				"https://sqs.ap-northeast-1.amazonaws.com/123456789012/jobs-dlq")
			break
		}
	}
	return urls
}

// watchDeadLetters sets up one watch for each queue. Without queues AWS is not asked for anything.
func (s *server) watchDeadLetters(ctx context.Context, urls []string, parts *app.Parts) ([]func(context.Context) error, error) {
	if len(urls) == 0 {
		return nil, nil
	}
	aws, err := cloud.Config(ctx, parts.Log)
	if err != nil {
		return nil, err
	}
	client, seen := sqs.NewFromConfig(aws), prometheus.NewCounterVec(prometheus.CounterOpts{Name: "framerun_dead_letters_total",
		Help: "Dead letters by what became of them (failed, spared, unknown_run, left, retried)."}, []string{"result"})
	parts.Metrics.MustRegister(seen)
	var watches []func(context.Context) error
	for _, address := range urls {
		w := &undertaker{server: s, letters: &jobs.DeadLetters{Client: client, URL: address}, log: parts.Log.With("queue", address), seen: seen}
		watches = append(watches, w.run)
	}
	return watches, nil
}

// undertaker fails the runs whose job lies in a dead letter queue: no worker will ever do it, and nobody should wait for that. A letter
// is taken out of the queue only after the store has answered, so one that is lost in between comes again, and finds its run ended.
type undertaker struct {
	*server
	letters *jobs.DeadLetters
	log     *slog.Logger
	seen    *prometheus.CounterVec
}

// run watches until ctx ends. It always returns nil: whatever goes wrong is tried again.
func (u *undertaker) run(ctx context.Context) error {
	for ctx.Err() == nil {
		letters, err := u.letters.Receive(ctx)
		for _, l := range letters {
			err = errors.Join(err, u.bury(ctx, l))
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		u.log.Warn("dead letters could not be read or settled, trying again", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(lettersRest):
		}
	}
	return nil
}

// bury settles one letter. What says nothing that the store could answer is left in the queue for the operator, and told.
func (u *undertaker) bury(ctx context.Context, l jobs.Letter) error {
	result, why, err := u.settle(ctx, l)
	if err != nil {
		u.seen.WithLabelValues("retried").Inc()
		return err // it comes again by itself
	}
	u.seen.WithLabelValues(result).Inc()
	about := []any{"result", result, "message", l.ID, "kind", l.Message.Kind, "run", l.Message.Run().ID, "attempt", l.Message.Attempt}
	if why != nil {
		u.log.Error("dead letter left in its queue for the operator", append(about, "error", why)...)
		return u.letters.Leave(ctx, l, letterLeft)
	}
	u.log.Warn("dead letter settled", about...)
	return u.letters.Forget(ctx, l)
}

// settle fails the letter's run if that still waits for this job. why is set where the letter makes no sense; err where another try
// may help.
func (u *undertaker) settle(ctx context.Context, l jobs.Letter) (result string, why, err error) {
	if l.Broken != nil {
		return "left", l.Broken, nil
	}
	run, err := u.store.RunOfAnyTenant(ctx, l.Message.Run())
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return "unknown_run", nil, nil
	case err != nil:
		return "", nil, err
	case l.Message.Attempt > run.Attempt:
		return "left", fmt.Errorf("the run is only at attempt %d", run.Attempt), nil
	case l.Message.Attempt < run.Attempt || !run.AwaitsJob(l.Message.Stage):
		return "spared", nil, nil
	}
	applied, err := u.step(ctx, lifecycle.Command{
		Verb: lifecycle.Fail, Run: run.Ref, Attempt: run.Attempt, By: u.account, Message: sentences["undeliverable"],
		If: &lifecycle.Guard{State: run.State},
	})
	if err == nil && applied.Outcome == lifecycle.Applied {
		return "failed", nil, nil
	}
	return "spared", nil, err
}
