package demo

import (
	"context"
	"slices"
)

// decided says confirm or reject to what the worker has parsed.
func (r *run) decided(decision, state string) step {
	return func(ctx context.Context) error {
		if err := r.do(ctx, "POST", decision, draft{"decision": decision, "attempt": r.now.Attempt}); err != nil {
			return err
		}
		return r.stands("the designer says "+decision, state)
	}
}

func (r *run) cancelled(ctx context.Context) error {
	if err := r.do(ctx, "POST", "cancel", nil); err != nil {
		return err
	}
	return r.stands("the designer cancels the "+r.label()+" run", "cancelled")
}

func (r *run) rated(feedback string) step {
	return func(ctx context.Context) error {
		if err := r.do(ctx, "POST", "feedback", draft{"feedbackStatus": feedback}); err != nil {
			return err
		}
		if r.now.FeedbackStatus == nil || *r.now.FeedbackStatus != feedback {
			return surprise("run "+r.now.ID, "feedback "+feedback, r.outcome())
		}
		r.say("200  rated: %s", feedback)
		return nil
	}
}

// placed tells that the result stands on the canvas. A placed run does not offer placing again.
func (r *run) placed(ctx context.Context) error {
	if err := r.do(ctx, "POST", "place", nil); err != nil {
		return err
	}
	if r.now.MaterializedAt == nil || slices.Contains(r.now.NextActions, "place") {
		return surprise("run "+r.now.ID, "a placed run", r.outcome())
	}
	r.say("200  placed on the canvas at %s", r.now.MaterializedAt.Format("15:04:05.000"))
	return nil
}

// stands expects the state that a decision leads to.
func (r *run) stands(what, state string) error {
	if r.now.state() != state {
		return surprise("run "+r.now.ID, state, r.now.state())
	}
	r.say("200  %s: %s", what, state)
	return nil
}

// explained expects exactly this sentence: what a designer is told of a failure is the suite's wording, never the worker's.
func (r *run) explained(sentence string) step {
	return func(context.Context) error {
		if r.now.ErrorMessage == nil || *r.now.ErrorMessage != sentence {
			return surprise("run "+r.now.ID, sentence, r.outcome())
		}
		r.say("     she is told: %s", sentence)
		return nil
	}
}
