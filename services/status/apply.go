package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"framerun.dev/pkg/events"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"framerun.dev/pkg/web"
)

// answer is what a worker is told. Outcome says what became of its word; Continue false says that nobody wants its work any more.
type answer struct {
	Outcome  lifecycle.Outcome `json:"outcome"`
	Status   lifecycle.Status  `json:"status"`
	Phase    *lifecycle.Phase  `json:"phase"`
	Attempt  int               `json:"attempt"`
	Continue bool              `json:"continue"`
}

func reply(outcome lifecycle.Outcome, run lifecycle.Run) *web.Reply {
	a := answer{Outcome: outcome, Status: run.State.Status(), Attempt: run.Attempt}
	if phase := run.State.Phase(); phase != "" {
		a.Phase = &phase
	}
	a.Continue = !run.Ended() && outcome != lifecycle.Superseded
	return &web.Reply{Body: a}
}

var verbs = map[event]lifecycle.Verb{parsed: lifecycle.Parsed, completed: lifecycle.Complete, failed: lifecycle.Fail}

// apply carries a worker's word out. A word that comes too late is a truthful 200, so that no worker ever tries again in vain.
func (s *server) apply(r *http.Request, said word) (*web.Reply, error) {
	applied, err := s.step(r.Context(), lifecycle.Command{
		Verb: verbs[said.event], Run: said.run, Attempt: said.attempt,
		By:     lifecycle.Actor{Voice: lifecycle.Worker, Name: s.account.Name},
		Result: s.whole(r.Context(), said), Message: said.message, Traceparent: web.Traceparent(r.Context()),
	})
	if err != nil {
		return nil, err
	}
	web.Note(r.Context(), "outcome", applied.Outcome)
	return reply(applied.Outcome, applied.Run), nil
}

// step is the one way by which anything but a person ends a run: webhooks, and the backend in a worker's place. This service is the
// only one that writes completed and failed; an operator's runctl can fail a run by the same way through lifecycle and store.
func (s *server) step(ctx context.Context, cmd lifecycle.Command) (store.Applied, error) {
	applied, err := s.store.Apply(ctx, cmd)
	if err == nil && applied.Outcome == lifecycle.Applied {
		s.nerve.TellChanged(cmd.Run)
	}
	return applied, err
}

// hear passes progress on. It writes no run; the answer tells the worker whether to go on.
func (s *server) hear(r *http.Request, said word) (*web.Reply, error) {
	run, outcome, err := s.listen(r.Context(), said)
	if err != nil {
		return nil, err
	}
	if outcome == lifecycle.Applied {
		s.nerve.TellProgress(run.Ref, events.Progress{Version: run.UpdatedAt, At: time.Now(), Percent: said.percent, Message: said.message})
	}
	return reply(outcome, run), nil
}

// listen says what progress means for the run, and notes the worker's pulse where a deadline asks for it. A run that moves on in
// between is looked at again: no worker is told to go on with what has just ended.
func (s *server) listen(ctx context.Context, said word) (run lifecycle.Run, outcome lifecycle.Outcome, err error) {
	for range looks {
		if run, err = s.store.RunOfAnyTenant(ctx, said.run); err != nil {
			return run, "", err
		}
		if outcome, err = lifecycle.Hear(run, said.attempt); err != nil || outcome != lifecycle.Applied {
			return run, outcome, err
		}
		noted, err := s.pulse.note(ctx, s.store, run)
		if err != nil || noted {
			return run, outcome, err
		}
	}
	return run, "", fmt.Errorf("run %s moves on all the time: %w", run.ID, lifecycle.ErrUnavailable)
}

// looks bound how often listen begins again. A run ends once, and its attempt rises by an operator's hand alone.
const looks = 3
