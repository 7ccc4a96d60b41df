package relay

import "time"

// looking says when the outbox is looked at next. The zero looking: at once.
type looking struct {
	next    time.Time
	soonest time.Time // a lane that is woken looks no sooner
	heard   bool      // the next look is a wake's
	again   bool      // the lane was woken: if the look finds nothing, an older entry of the same run may be on its way, so that one more is due
}

func (l *looking) woken() {
	if l.soonest.Before(l.next) {
		l.next = l.soonest
	}
	l.heard, l.again = true, true
}

// done is called after a look that began then, found so many entries of the most that it may find, and of which so many have arrived.
func (l *looking) done(began time.Time, found, most, arrived int) {
	l.soonest = began.Add(pace)
	if l.heard && arrived == 0 {
		l.soonest = began.Add(breath)
	}
	l.heard = false
	switch {
	case arrived > 0 && found == most: // many wait
		l.next = began
	case arrived > 0: // there may be more
		l.next = l.soonest
	case found == 0 && l.again:
		l.next, l.again = began.Add(breath), false
	default:
		l.next = began.Add(Look)
	}
}

const (
	// pace is the time between two looks, unless a full batch shows that many wait: a claim has its price, however little it finds.
	pace = 50 * time.Millisecond
	// breath is the time after a wake in vain before the lane hears another one: what waits may wait for something that is down.
	breath = 250 * time.Millisecond
)
