package lifecycle

import "time"

// Outcome says what became of a command.
type Outcome string

const (
	// Applied: this call made the step. Of each step exactly one call is told so.
	Applied Outcome = "applied"
	// Duplicate: a worker told again what is already so.
	Duplicate Outcome = "duplicate"
	// Superseded: the word is of an older attempt.
	Superseded Outcome = "superseded"
	// AlreadyTerminal: the run has ended otherwise; the first ending wins.
	AlreadyTerminal Outcome = "already_terminal"
	// Spared: the backend's Guard does not hold any more, so the run is left alone. Not written to the timeline.
	Spared Outcome = "spared"
	// Noted: an operator did something beside the run, to what was still to be told of it. The run is as it was.
	Noted Outcome = "noted"
	// Unchanged: a person decided again what is already decided. Not written to the timeline.
	Unchanged Outcome = "unchanged"
)

// What names an event, in the past tense.
type What string

const (
	WasCreated   What = "created"
	WasParsed    What = "parsed"
	WasConfirmed What = "confirmed"
	WasRejected  What = "rejected"
	WasCompleted What = "completed"
	WasFailed    What = "failed"
	WasCancelled What = "cancelled"
	WasPlaced    What = "placed"
	WasRated     What = "rated"
	WasDeleted   What = "deleted"
	WasRequeued  What = "requeued"

	// What operators do to the outbox. No command of a run leads to these.
	DeliveryRetried What = "delivery_retried"
	DeliverySkipped What = "delivery_skipped"
)

var happened = map[Verb]What{
	Create: WasCreated, Parsed: WasParsed, Confirm: WasConfirmed, Reject: WasRejected, Complete: WasCompleted, Fail: WasFailed,
	Cancel: WasCancelled, Place: WasPlaced, Rate: WasRated, Delete: WasDeleted, Requeue: WasRequeued,
}

// Event is one line of a run's timeline. Applied events replay to the row; the others are worker words that came too late, and what
// operators did beside the run: they changed nothing in it and are kept so that nobody has to guess.
type Event struct {
	Run     Ref
	Seq     int // 1, 2, 3 … per run, without a gap; given by the store
	What    What
	Outcome Outcome // Applied, Duplicate, Superseded, AlreadyTerminal or Noted
	By      Actor
	From    State
	To      State     // equals From when nothing changed
	Attempt int       // the attempt that the command spoke of
	Version time.Time // the row's UpdatedAt after this event
	At      time.Time // when it was stored, by PostgreSQL's clock
	Data    EventData

	Traceparent string
}

// EventData is what the command brought along; nil where it brought nothing.
type EventData struct {
	ResultURL    *string
	ErrorMessage *string
	FlagCount    *int
	Score        *Score
	ScoreVersion *string
	Feedback     *FeedbackStatus
	Delivery     *string // what was retried or skipped: "jobs parse", "events 3"
}

// Job is what is sent to a worker: one stage of one attempt of a run.
type Job struct {
	Run         Run
	Stage       Stage
	Attempt     int
	Traceparent string
}

// Announcement is an applied event on its way to the public feed, with the tenant that it belongs to.
type Announcement struct {
	Event  Event
	Tenant Tenant
}

// Landing is a completed run on its way to the platform's design registry.
type Landing struct {
	Run Run
	At  time.Time // when it was completed
	By  Actor     // in whose name
}
