package sqs

import (
	"errors"
	"regexp"
)

// failure is one entry of a batch that did not go through, inside an answer
// that is a 200 all the same.
type failure struct {
	ID          string `json:"Id"`
	Code        string
	Message     string
	SenderFault bool
}

type success struct {
	ID string `json:"Id"`
}

type batchOut struct {
	Successful []success `json:",omitempty"`
	Failed     []failure `json:",omitempty"`
}

func failed(id string, err error) failure {
	e, ok := errors.AsType[*apiError](err)
	if !ok {
		e = refuse("InternalFailure", "%v", err)
	}
	_, ours := receiverStatus[e.code]
	return failure{ID: id, Code: e.code, Message: e.message, SenderFault: !ours}
}

// each does one thing to every entry of a batch and reports entry by entry.
func each[E entry](entries []E, do func(E) error) (batchOut, error) {
	if err := checkBatch(entries); err != nil {
		return batchOut{}, err
	}
	var out batchOut
	for _, e := range entries {
		if err := do(e); err != nil {
			out.Failed = append(out.Failed, failed(e.id(), err))
		} else {
			out.Successful = append(out.Successful, success{e.id()})
		}
	}
	return out, nil
}

type entry interface{ id() string }

var entryID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// checkBatch refuses a batch as a whole.
func checkBatch[E entry](entries []E) error {
	switch n := len(entries); {
	case n == 0:
		return refuse("EmptyBatchRequest", "There should be at least one entry in the request.")
	case n > 10:
		return refuse("TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent %d.", n)
	}
	seen := map[string]bool{}
	for _, e := range entries {
		id := e.id()
		if !entryID.MatchString(id) {
			return refuse("InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
		}
		if seen[id] {
			return refuse("BatchEntryIdsNotDistinct", "Id %s repeated.", id)
		}
		seen[id] = true
	}
	return nil
}
