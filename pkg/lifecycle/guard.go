package lifecycle

import "time"

// Guard is what the backend saw of a run before it speaks in a worker's place. When it speaks, the run may have moved on, or its worker
// may have spoken; then the run is left alone. The command's attempt belongs to it.
type Guard struct {
	State  State         // how the run was
	Silent time.Duration // for how long nothing must have been heard of it; 0: that does not matter
	Heard  time.Time     // its worker's last progress in this attempt; the store fills it in, under the run's lock
}

// holds reports whether the run is open and still as it was seen. now is PostgreSQL's time, as are UpdatedAt and Heard: no other clock is
// asked.
func (g Guard) holds(run Run, attempt int, now time.Time) bool {
	return !run.Ended() && run.Attempt == attempt && run.State == g.State && (g.Silent == 0 || now.Sub(g.since(run)) >= g.Silent)
}

// since is when the silence began: with the run's last change, or with its worker's last word. While the designer is asked a worker's
// word does not count: that clock is hers.
func (g Guard) since(run Run) time.Time {
	if g.State.Working() && g.Heard.After(run.UpdatedAt) {
		return g.Heard
	}
	return run.UpdatedAt
}

// Deadlines are how long a run may stay in each open state without a word. A state that has none, or 0, waits for ever, which is what
// the seeds say.
type Deadlines map[State]time.Duration

// Any reports whether there is a deadline at all.
func (d Deadlines) Any() bool {
	for _, limit := range d {
		if limit > 0 {
			return true
		}
	}
	return false
}
