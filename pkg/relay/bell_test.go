package relay

import "testing"

// Catches a bell that makes its ringer wait, loses the only ring, or keeps count.
func TestBell(t *testing.T) {
	b := NewBell()
	for range 3 {
		b.Ring()
	}
	<-b
	select {
	case <-b:
		t.Error("three rings before the lane woke are more than one")
	default:
	}
}
