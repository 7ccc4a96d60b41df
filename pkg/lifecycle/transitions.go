package lifecycle

// When narrows a transition to runs of one confirm mode.
type When string

const (
	Always        When = ""
	IfNormal      When = "normal"       // the designer is asked
	IfAutoConfirm When = "auto_confirm" // nobody is asked
)

// Transition is one line of the table: in state From, Verb leads to To and asks a worker for Job.
type Transition struct {
	Kind Kind
	Verb Verb
	By   Voice
	From State
	When When
	To   State
	Job  Stage
}

// Transitions is the whole lifecycle, from the seeds' type codes and notes. Decide reads it, the README's drawing
// and the package's are held against it by tests. Whatever is not in it does not happen.
var Transitions = []Transition{
	{WF2Des, Create, User, None, Always, Parsing, StageParse},

	{WF2Des, Parsed, Worker, Parsing, IfNormal, AwaitingConfirm, NoJob},
	{WF2Des, Parsed, Worker, Parsing, IfAutoConfirm, Assembling, NoJob}, // the same worker call goes on

	{WF2Des, Confirm, User, AwaitingConfirm, Always, Assembling, StageAssemble},
	{WF2Des, Reject, User, AwaitingConfirm, Always, Rejected, NoJob},

	{WF2Des, Complete, Worker, Assembling, Always, Completed, NoJob},
	{WF2Des, Complete, Worker, Parsing, IfAutoConfirm, Completed, NoJob},

	{WF2Des, Fail, Worker, Parsing, Always, Failed, NoJob},
	{WF2Des, Fail, Worker, AwaitingConfirm, Always, Failed, NoJob},
	{WF2Des, Fail, Worker, Assembling, Always, Failed, NoJob},

	{WF2Des, Cancel, User, Parsing, Always, Cancelled, NoJob},
	{WF2Des, Cancel, User, AwaitingConfirm, Always, Cancelled, NoJob},
	{WF2Des, Cancel, User, Assembling, Always, Cancelled, NoJob},

	{WF2Des, Place, User, Completed, Always, Completed, NoJob},
	{WF2Des, Rate, User, Completed, Always, Completed, NoJob},

	{WF2Des, Delete, User, Completed, Always, Completed, NoJob}, // the row stays as it ended, marked deleted
	{WF2Des, Delete, User, Failed, Always, Failed, NoJob},
	{WF2Des, Delete, User, Rejected, Always, Rejected, NoJob},
	{WF2Des, Delete, User, Cancelled, Always, Cancelled, NoJob},

	{WF2Des, Requeue, Backend, Parsing, Always, Parsing, StageParse}, // attempt + 1: the old worker is fenced off
	{WF2Des, Requeue, Backend, Assembling, Always, Assembling, StageAssemble},

	{Code2WF, Create, User, None, Always, Processing, StageGenerate},
	{Code2WF, Complete, Worker, Processing, Always, Completed, NoJob},
	{Code2WF, Fail, Worker, Processing, Always, Failed, NoJob},
	{Code2WF, Place, User, Completed, Always, Completed, NoJob},
	{Code2WF, Delete, User, Completed, Always, Completed, NoJob},
	{Code2WF, Delete, User, Failed, Always, Failed, NoJob},
}

// leaves reports whether t is a way out of the state that r is in.
func (t Transition) leaves(r Run) bool {
	return t.Kind == r.Kind && t.From == r.State && t.When.holds(r.AutoConfirm)
}

func (w When) holds(autoConfirm bool) bool {
	switch w {
	case IfNormal:
		return !autoConfirm
	case IfAutoConfirm:
		return autoConfirm
	}
	return true
}

// transition finds the line by which verb leads out of r's state.
func transition(r Run, verb Verb) (Transition, bool) {
	for _, t := range Transitions {
		if t.Verb == verb && t.leaves(r) {
			return t, true
		}
	}
	return Transition{}, false
}

// exists reports whether runs of this kind know the verb at all.
func exists(kind Kind, verb Verb) bool {
	for _, t := range Transitions {
		if t.Kind == kind && t.Verb == verb {
			return true
		}
	}
	return false
}
