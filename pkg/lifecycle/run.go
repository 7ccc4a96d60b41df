package lifecycle

import (
	"math"
	"strconv"
	"time"
)

// Ref names one run.
type Ref struct {
	Kind Kind
	ID   string // UUIDv7, canonical lower case
}

// Tenant is the fence between organizations and projects. Whatever lies outside does not exist for the caller.
type Tenant struct {
	OrganizationID int64
	ProjectID      int64
}

// Run is one generation run: a row of wf2des or code2wf, with (status, phase) folded into State.
// Fields that the other kind's table does not have stay zero. A Run is a value: copying it is cheap and changes nothing.
type Run struct {
	Ref
	Tenant

	FigmaFileKey    string
	ScreenID        string
	PlacementTarget *string // canonical node id

	WFNodeID       string  // WF2Des: the node that the open-run key guards
	Edge           Edge    // WF2Des
	Prompt         *string // WF2Des
	AutoConfirm    bool    // WF2Des: one worker call parses and assembles, nobody is asked
	TriggerSurface Surface // WF2Des
	PageImportID   string  // Code2WF

	State   State
	Attempt int // the fence: worker commands of an older attempt are no-ops

	ResultURL    *string // S3 key, never a URL
	ErrorMessage *string // fit for the client
	FlagCount    *int
	Score        *Score  // WF2Des
	ScoreVersion *string // WF2Des: scores of different versions are never compared

	MaterializedAt *time.Time      // when the plugin placed the result; the first time stands
	Feedback       *FeedbackStatus // WF2Des

	CreatedAt time.Time
	UpdatedAt time.Time // rises strictly with every change of the row: the run's version
	DeletedAt *time.Time
	CreatedBy string
	UpdatedBy string
	DeletedBy *string
}

// Work names the kind of work that a worker is asked for, and so the queue: the edge of a WF2Des run, else the kind.
func (r Run) Work() string {
	if r.Kind == WF2Des {
		return string(r.Edge)
	}
	return string(r.Kind)
}

// Ended reports whether the run has reached one of its ends.
func (r Run) Ended() bool { return !r.State.Open() }

// AwaitsJob reports whether the run waits for the worker that was given this stage. With auto-confirm the job that parses also assembles.
func (r Run) AwaitsJob(stage Stage) bool {
	switch r.State {
	case Parsing:
		return stage == StageParse
	case Assembling:
		return stage == StageAssemble || stage == StageParse && r.AutoConfirm
	case Processing:
		return stage == StageGenerate
	}
	return false
}

// NextActions are the commands by which a person can move this run on right now, in the table's order.
// A command that would change nothing (placing a placed run) is not offered.
func (r Run) NextActions() []Verb {
	actions := []Verb{}
	if r.DeletedAt != nil {
		return actions
	}
	for _, t := range Transitions {
		if t.By == User && t.leaves(r) && !(t.Verb == Place && r.MaterializedAt != nil) {
			actions = append(actions, t.Verb)
		}
	}
	return actions
}

// Score is a run's score in ten-thousandths: 0..10000 stands for 0..1. The seed's numeric(5,4) gives the four decimals;
// the bounds 0 and 1 are this suite's reading of it, kept here and in one CHECK.
type Score int

// NewScore rounds f to four decimals. It reports false for anything outside 0..1, NaN included.
func NewScore(f float64) (Score, bool) {
	if !(f >= 0 && f <= 1) {
		return 0, false
	}
	return Score(math.Round(f * 10000)), true
}

// Float is the score between 0 and 1.
func (s Score) Float() float64 { return float64(s) / 10000 }

// String is the shortest exact decimal form, with at most four decimals.
func (s Score) String() string { return strconv.FormatFloat(s.Float(), 'f', -1, 64) }
