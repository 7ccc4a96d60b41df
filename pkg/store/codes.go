package store

import (
	"fmt"

	"framerun.dev/pkg/lifecycle"
)

// The seeds store enums as digits in strings. These tables are the only place that knows which digit means which word.

// code is what one State is in the database: status, and phase ("" for NULL).
type code struct{ status, phase string }

var stateCodes = map[lifecycle.Kind]map[lifecycle.State]code{
	lifecycle.WF2Des: {
		lifecycle.Parsing:         {"0", "0"},
		lifecycle.AwaitingConfirm: {"0", "1"},
		lifecycle.Assembling:      {"0", "2"},
		lifecycle.Completed:       {"1", ""},
		lifecycle.Failed:          {"2", ""},
		lifecycle.Rejected:        {"3", ""},
		lifecycle.Cancelled:       {"4", ""},
	},
	lifecycle.Code2WF: {
		lifecycle.Processing: {"0", ""},
		lifecycle.Completed:  {"1", ""},
		lifecycle.Failed:     {"2", ""},
	},
}

var (
	statusCodes = map[lifecycle.Status]string{
		lifecycle.StatusProcessing: "0", lifecycle.StatusCompleted: "1", lifecycle.StatusFailed: "2",
		lifecycle.StatusRejected: "3", lifecycle.StatusCancelled: "4",
	}
	phaseCodes    = map[lifecycle.Phase]string{lifecycle.PhaseParse: "0", lifecycle.PhaseAwaitingConfirm: "1", lifecycle.PhaseAssemble: "2"}
	edgeCodes     = map[lifecycle.Edge]string{lifecycle.EdgeWF2Des: "0", lifecycle.EdgeDes2WF: "1"}
	surfaceCodes  = map[lifecycle.Surface]string{lifecycle.API: "0", lifecycle.Plugin: "1"}
	feedbackCodes = map[lifecycle.FeedbackStatus]string{lifecycle.Fixed: "0", lifecycle.Adopted: "1"}
	confirmCodes  = map[bool]string{false: "0", true: "1"}
)

// word turns a digit back; an unknown digit means that the database is newer than this program.
func word[W comparable](codes map[W]string, digit string) (W, error) {
	for w, d := range codes {
		if d == digit {
			return w, nil
		}
	}
	var none W
	return none, fmt.Errorf("store: no %T has the code %q", none, digit)
}

func stateOf(kind lifecycle.Kind, c code) (lifecycle.State, error) {
	for s, known := range stateCodes[kind] {
		if known == c {
			return s, nil
		}
	}
	return "", fmt.Errorf("store: no %s state has status %q and phase %q", kind, c.status, c.phase)
}
