package lifecycle

// Verb is what a command asks for, in the imperative.
type Verb string

const (
	Create   Verb = "create"
	Parsed   Verb = "parsed" // the worker's own word: "I have parsed it"
	Confirm  Verb = "confirm"
	Reject   Verb = "reject"
	Complete Verb = "complete"
	Fail     Verb = "fail"
	Cancel   Verb = "cancel"
	Place    Verb = "place"
	Rate     Verb = "feedback"
	Delete   Verb = "delete"
	Requeue  Verb = "requeue"
)

// Voice is the kind of actor that a verb belongs to.
type Voice string

const (
	User    Voice = "user"    // a person with a Cognito token
	Worker  Voice = "worker"  // an AI worker with a signature
	Backend Voice = "backend" // the suite itself, also in the place of a worker that a job can never reach, or its operator
)

// Actor is who acts. Name goes into the audit columns and the timeline: a Cognito subject or a backend actor's name.
type Actor struct {
	Voice Voice
	Name  string
}

// Result is what a worker hands in when it is done.
type Result struct {
	Key          *string // S3 key under the run's own prefix; required by Complete, a failure's artifact for Fail
	FlagCount    *int
	Score        *Score
	ScoreVersion *string
}

// Command is one wish about one run: a plain value, so that it can be queued, stored together with others and told again.
// It cannot call anything.
type Command struct {
	Verb   Verb
	Run    Ref
	Tenant *Tenant // the caller's fence; nil for workers and the backend, operators included, which see every tenant
	By     Actor

	Attempt  int            // Parsed, Complete, Fail, Confirm, Reject, Requeue: the attempt that is spoken of
	Result   Result         // Complete, Fail
	Message  string         // Fail: a sentence fit for the client, never empty
	Feedback FeedbackStatus // Rate
	If       *Guard         // Fail by the backend: only while this is still so; nil: whatever the run is

	Traceparent string // W3C trace context of the request, carried to the job and the event
}
