package relay

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Catches a wake that has to wait for long although the one before was not in vain: a lane that has carried all that there was, or has just
// looked by itself, would be the slower the less it has to do. Catches wakes that keep a lane busy with claims of next to nothing, and a lane
// that rests although many wait.
func TestAWakeWaitsForLongOnlyAfterOneInVain(t *testing.T) {
	t.Parallel()
	const alone, woken = false, true
	const most = 10
	type look struct {
		woken          bool
		at             int // milliseconds after the beginning
		found, arrived int
	}
	for about, c := range map[string]struct {
		looks []look
		next  int // where the last look leads to
		woken int // and where a wake does
	}{
		"it looked by itself":              {[]look{{alone, 1, 0, 0}, {alone, 1001, 0, 0}}, 2001, 1051},
		"nobody took it, and none woke it": {[]look{{alone, 1, most, 0}}, 1001, 51},
		"it carried all that there was":    {[]look{{woken, 1, 9, 9}, {alone, 51, 0, 0}}, 301, 101},
		"and looked once more":             {[]look{{woken, 1, 9, 9}, {alone, 51, 0, 0}, {alone, 301, 0, 0}}, 1301, 351},
		"there may be more":                {[]look{{woken, 1, 9, 9}}, 51, 51},
		"some were not taken":              {[]look{{woken, 1, 9, 1}}, 51, 51},
		"many wait":                        {[]look{{woken, 1, most, most}}, 1, 1},
		"nothing was there":                {[]look{{woken, 1, 0, 0}}, 251, 251},
		"nor once more":                    {[]look{{woken, 1, 0, 0}, {alone, 251, 0, 0}}, 1251, 301},
		"nobody took it":                   {[]look{{woken, 1, 9, 0}}, 1001, 251},
		"nothing more was there":           {[]look{{woken, 1, 9, 9}, {alone, 51, 0, 0}, {woken, 101, 0, 0}}, 351, 351},
	} {
		start := time.Now()
		var l looking
		for _, look := range c.looks {
			if look.woken {
				l.woken()
			}
			began := start.Add(time.Duration(look.at) * time.Millisecond)
			if l.next.After(began) {
				t.Errorf("%s: a look at %d ms is too soon", about, look.at)
			}
			l.done(began, look.found, most, look.arrived)
		}
		next := l.next
		l.woken()
		if diff := cmp.Diff([]time.Duration{ms(c.next), ms(c.woken)}, []time.Duration{next.Sub(start), l.next.Sub(start)}); diff != "" {
			t.Errorf("%s: the next look, and one if it is woken (-want +got):\n%s", about, diff)
		}
	}
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }
