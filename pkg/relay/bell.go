package relay

// Bell wakes a lane of the same process: whoever learns that something waits to be claimed rings.
type Bell chan struct{}

// NewBell is for one lane's Wake.
func NewBell() Bell { return make(Bell, 1) }

// Ring never waits. Rings that come before the lane has woken are one.
func (b Bell) Ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}
