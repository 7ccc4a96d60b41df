package lifecycle

// Kind says which of the two seed tables holds a run.
type Kind string

const (
	// WF2Des runs turn a wireframe into a design, or back (see Edge). A designer confirms what the worker parsed.
	WF2Des Kind = "wf2des"
	// Code2WF runs turn an imported page's code into a wireframe, in one step.
	Code2WF Kind = "code2wf"
)

// Kinds are all kinds, in the order in which people read them.
var Kinds = []Kind{WF2Des, Code2WF}

// Edge is the direction of a WF2Des run. It is part of the open-run key: a run of one edge never blocks the other.
type Edge string

const (
	EdgeWF2Des Edge = "wf2des"
	EdgeDes2WF Edge = "des2wf"
)

// State is how a run is: one value per legal (status, phase) pair of the seed, so that an illegal pair cannot be named.
type State string

const (
	// None is the state before the run exists. No row is ever in it.
	None State = ""

	// Parsing: a worker reads the source. The first state of a WF2Des run.
	Parsing State = "parsing"
	// AwaitingConfirm: the worker has parsed; the designer says whether it understood. Workers wait.
	AwaitingConfirm State = "awaiting_confirm"
	// Assembling: a worker builds the result.
	Assembling State = "assembling"
	// Processing: a worker generates. The only open state of a Code2WF run.
	Processing State = "processing"

	// Completed: the result lies in S3 under result_url.
	Completed State = "completed"
	// Failed: error_message says why, in words fit for the client.
	Failed State = "failed"
	// Rejected: the designer declined what was parsed. Not a failure.
	Rejected State = "rejected"
	// Cancelled: somebody called the run off; its node is free again.
	Cancelled State = "cancelled"
)

// States are the states that a row can be in, in the order of a run's life.
var States = []State{Parsing, AwaitingConfirm, Assembling, Processing, Completed, Failed, Rejected, Cancelled}

// Open reports whether somebody still owes this run something. An open WF2Des run blocks its node.
func (s State) Open() bool { return s.Status() == StatusProcessing }

// Working reports whether it is a worker who owes the run something.
func (s State) Working() bool { return s.Open() && s != AwaitingConfirm }

// Status is the coarse word that clients and workers see (wf2des_status in the seed).
type Status string

const (
	StatusProcessing Status = "processing"
	StatusCompleted  Status = "completed"
	StatusFailed     Status = "failed"
	StatusRejected   Status = "rejected"
	StatusCancelled  Status = "cancelled"
)

// Phase is the word for what goes on inside StatusProcessing (wf2des_phase in the seed); empty when there is none.
type Phase string

const (
	PhaseParse           Phase = "parse"
	PhaseAwaitingConfirm Phase = "awaiting_confirm"
	PhaseAssemble        Phase = "assemble"
)

// Status is the status word of s; empty for None.
func (s State) Status() Status {
	switch s {
	case Parsing, AwaitingConfirm, Assembling, Processing:
		return StatusProcessing
	case None:
		return ""
	}
	return Status(s)
}

// Phase is the phase word of s; empty for ended states and for Processing, which has no phase column.
func (s State) Phase() Phase {
	switch s {
	case Parsing:
		return PhaseParse
	case AwaitingConfirm:
		return PhaseAwaitingConfirm
	case Assembling:
		return PhaseAssemble
	}
	return ""
}

// Stage names the work that a job asks of a worker.
type Stage string

const (
	// NoJob: the transition asks nothing of a worker.
	NoJob         Stage = ""
	StageParse    Stage = "parse"
	StageAssemble Stage = "assemble"
	StageGenerate Stage = "generate"
)

// Surface is where a run was asked for, derived from the client id that signed in and never from a body.
type Surface string

const (
	API    Surface = "api"
	Plugin Surface = "plugin"
)

// FeedbackStatus is what the designer says of a placed result. Book-keeping only; the last word stands.
type FeedbackStatus string

const (
	Fixed   FeedbackStatus = "fixed"
	Adopted FeedbackStatus = "adopted"
)
