package main

import (
	"framerun.dev/pkg/app"
	"framerun.dev/pkg/lifecycle"
)

// readDeadlines reads how long a run may stay in each open state without a word; 0, the default, is for ever. Only CONFIRM_DEADLINE
// is about a person.
func readDeadlines(e *app.Env) lifecycle.Deadlines {
	return lifecycle.Deadlines{
		lifecycle.Parsing:         e.Duration("PARSING_DEADLINE", 0),
		lifecycle.AwaitingConfirm: e.Duration("CONFIRM_DEADLINE", 0),
		lifecycle.Assembling:      e.Duration("ASSEMBLING_DEADLINE", 0),
		lifecycle.Processing:      e.Duration("PROCESSING_DEADLINE", 0),
	}
}
