package resultdoc

import "time"

// Document is the shape of a result document as far as the suite knows it. A worker may keep more in it: members that are not named
// here are left as they are.
type Document struct {
	RunID   string `bson:"_id"`
	Attempt int    `bson:"attempt"` // the fence of every write

	Request    Request     `bson:"request"`
	Parse      Parse       `bson:"parse"`
	Confidence *Confidence `bson:"confidence,omitempty"`

	Score        *float64 `bson:"score,omitempty"` // between 0 and 1
	ScoreVersion *string  `bson:"score_version,omitempty"`
}

// Request mirrors what was asked for.
type Request struct {
	PlacementTarget *string `bson:"placement_target"` // as in the row
}

// Parse is what the worker understood, and what the designer said to it. At most one of the two decisions is there.
type Parse struct {
	Components []string  `bson:"components,omitempty"` // the worker's
	Confirmed  *Decision `bson:"confirmed,omitempty"`  // the suite's
	Rejected   *Decision `bson:"rejected,omitempty"`   // the suite's
}

// Decision is who decided, and when.
type Decision struct {
	By string    `bson:"by"` // a Cognito subject
	At time.Time `bson:"at"` // to the millisecond: BSON knows no less
}

// Confidence is how sure the worker is.
type Confidence struct {
	FlagCount int `bson:"flag_count"` // the row's flag_count is copied from here (seed)
}

// Paths of the members that the suite reads and writes by themselves.
const (
	attemptPath   = "attempt"
	confirmedPath = "parse.confirmed"
	rejectedPath  = "parse.rejected"
)
