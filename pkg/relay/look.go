package relay

import "time"

// looking says when the outbox is looked at next. The zero looking: at once.
type looking struct {
	next    time.Time
	soonest time.Time // a lane that is woken looks no sooner
	heard   bool      // the next look is a wake's
	again   bool      // the lane was woken: if the look finds nothing, an older entry of the same run may be on its way, so that one more is due
}

func (l *looking) woken() { l.next, l.heard, l.again = l.soonest, true, true }

// done is called after a look that began then: carried says that some of what it found has arrived, empty that it found nothing.
func (l *looking) done(began time.Time, carried, empty bool) {
	if l.heard && !carried {
		l.soonest = began.Add(breath)
	}
	l.heard = false
	switch {
	case carried: // there may be more
		l.next = began
	case empty && l.again:
		l.next, l.again = began.Add(breath), false
	default:
		l.next = began.Add(Look)
	}
}

// breath is the time after a wake in vain before the lane hears another one: what waits may wait for something that is down.
const breath = 250 * time.Millisecond
