package lifecycle

import (
	"fmt"
	"time"
)

// Decision is what a command comes to: the row as it shall be, the line for the timeline, and the work to ask for.
// Storing it is somebody else's business.
type Decision struct {
	Outcome Outcome
	Next    Run    // equals the run as it was unless Outcome is Applied
	Event   *Event // nil only when Outcome is Unchanged or Spared
	Job     Stage  // NoJob for none
}

// Begin decides the creation of draft, whose caller-given fields are already valid. Times and the sequence number are the
// store's to fill in.
func Begin(draft Run, by Actor, traceparent string) Decision {
	draft.State, draft.Attempt = None, 1
	draft.CreatedBy = by.Name
	t, _ := transition(draft, Create)
	return move(draft, Command{Verb: Create, Run: draft.Ref, By: by, Attempt: 1, Traceparent: traceparent}, t, time.Time{})
}

// Decide says what cmd means for run, which is the row as it stands, locked. It is the only place where a step is decided.
// now is PostgreSQL's time, later than run.UpdatedAt.
//
// Worker commands that come too late are outcomes, not errors. A person's command on a run that moved on is a RefusedError
// that holds the run as it is. Errors: ErrNotFound, *InvalidError, *RefusedError.
func Decide(run Run, cmd Command, now time.Time) (Decision, error) {
	switch cmd.Verb {
	case Parsed, Complete, Fail:
		return decideForWorker(run, cmd, now)
	}
	return decideForPerson(run, cmd, now)
}

// Hear says what a worker's progress report means for run: Applied while the work is wanted, Superseded or AlreadyTerminal
// when it is not. Progress changes nothing, so there is no Decision. Error: *RefusedError for an attempt that never was.
func Hear(run Run, attempt int) (Outcome, error) {
	switch {
	case attempt < run.Attempt:
		return Superseded, nil
	case attempt > run.Attempt:
		return "", refuseAttempt(run, attempt)
	case run.Ended():
		return AlreadyTerminal, nil
	}
	return Applied, nil
}

func decideForWorker(run Run, cmd Command, now time.Time) (Decision, error) {
	if !exists(run.Kind, cmd.Verb) {
		return Decision{}, &InvalidError{"/event", fmt.Sprintf("a %s run has no parse step; send completed or failed", run.Kind)}
	}
	if cmd.If != nil && !cmd.If.holds(run, cmd.Attempt, now) {
		return Decision{Outcome: Spared, Next: run}, nil
	}
	if cmd.Attempt < run.Attempt {
		return late(run, cmd, now, Superseded), nil
	}
	if cmd.Attempt > run.Attempt {
		return Decision{}, refuseAttempt(run, cmd.Attempt)
	}
	if t, ok := transition(run, cmd.Verb); ok {
		return move(run, cmd, t, now), nil
	}
	if run.Ended() {
		return late(run, cmd, now, lateOutcome(run, cmd.Verb)), nil
	}
	if cmd.Verb == Parsed {
		return late(run, cmd, now, Duplicate), nil
	}
	return Decision{}, refuse(run, PhaseConflict, "a run in %s cannot be completed by a worker yet", run.State)
}

// lateOutcome tells the same ending told twice from another ending.
func lateOutcome(run Run, verb Verb) Outcome {
	if verb == Complete && run.State == Completed || verb == Fail && run.State == Failed {
		return Duplicate
	}
	return AlreadyTerminal
}

func decideForPerson(run Run, cmd Command, now time.Time) (Decision, error) {
	if !exists(run.Kind, cmd.Verb) || run.DeletedAt != nil && cmd.Verb != Delete {
		return Decision{}, ErrNotFound
	}
	if cmd.namesAttempt() && cmd.Attempt != run.Attempt {
		return Decision{}, refuseAttempt(run, cmd.Attempt)
	}
	if alreadySo(run, cmd) {
		return Decision{Outcome: Unchanged, Next: run}, nil
	}
	if t, ok := transition(run, cmd.Verb); ok {
		return move(run, cmd, t, now), nil
	}
	return Decision{}, refuse(run, StateConflict, "%s is not possible for a run that is %s", cmd.Verb, run.State)
}

// namesAttempt reports whether the command, which is not a worker's, is about one attempt and no other.
func (cmd Command) namesAttempt() bool {
	return cmd.Verb == Confirm || cmd.Verb == Reject || cmd.Verb == Requeue
}

// alreadySo recognises the same decision made again, which is answered like the first time and changes nothing.
func alreadySo(run Run, cmd Command) bool {
	switch cmd.Verb {
	case Confirm:
		return run.State == Assembling && !run.AutoConfirm
	case Reject:
		return run.State == Rejected
	case Cancel:
		return run.State == Cancelled
	case Place:
		return run.MaterializedAt != nil
	case Rate:
		return run.Feedback != nil && *run.Feedback == cmd.Feedback
	case Delete:
		return run.DeletedAt != nil
	}
	return false
}

// move takes the step.
func move(run Run, cmd Command, t Transition, now time.Time) Decision {
	next := run
	next.State = t.To
	next.UpdatedAt, next.UpdatedBy = now, cmd.By.Name
	data := cmd.data()
	switch t.Verb {
	case Complete, Fail:
		next.ResultURL, next.ErrorMessage, next.FlagCount = data.ResultURL, data.ErrorMessage, data.FlagCount
		if run.Kind == WF2Des { // code2wf has no score columns; its timeline keeps what was said
			next.Score, next.ScoreVersion = data.Score, data.ScoreVersion
		}
	case Place:
		next.MaterializedAt = &now
	case Rate:
		next.Feedback = data.Feedback
	case Delete:
		next.DeletedAt, next.DeletedBy = &now, &next.UpdatedBy
	case Requeue:
		next.Attempt++
	}
	cmd.Attempt = next.Attempt // whoever need not name an attempt speaks of the run as it is
	return Decision{Outcome: Applied, Next: next, Event: cmd.event(run, next, now, Applied), Job: t.Job}
}

// late records a worker's word that changes nothing.
func late(run Run, cmd Command, now time.Time, outcome Outcome) Decision {
	return Decision{Outcome: outcome, Next: run, Event: cmd.event(run, run, now, outcome)}
}

func (cmd Command) event(from, to Run, now time.Time, outcome Outcome) *Event {
	return &Event{
		Run: from.Ref, What: happened[cmd.Verb], Outcome: outcome, By: cmd.By,
		From: from.State, To: to.State, Attempt: cmd.Attempt, Version: to.UpdatedAt, At: now,
		Data: cmd.data(), Traceparent: cmd.Traceparent,
	}
}

// data is what of the command belongs to its verb; the rest is not looked at.
func (cmd Command) data() EventData {
	switch cmd.Verb {
	case Complete:
		r := cmd.Result
		return EventData{ResultURL: r.Key, FlagCount: r.FlagCount, Score: r.Score, ScoreVersion: r.ScoreVersion}
	case Fail:
		return EventData{ResultURL: cmd.Result.Key, ErrorMessage: &cmd.Message}
	case Rate:
		return EventData{Feedback: &cmd.Feedback}
	}
	return EventData{}
}

func refuse(run Run, code Refusal, format string, args ...any) *RefusedError {
	return &RefusedError{Code: code, Run: run, Reason: fmt.Sprintf(format, args...)}
}

func refuseAttempt(run Run, attempt int) *RefusedError {
	return refuse(run, AttemptMismatch, "attempt %d was named, but attempt %d is the one that runs", attempt, run.Attempt)
}
