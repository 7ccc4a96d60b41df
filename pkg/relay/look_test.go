package relay

import (
	"testing"
	"time"
)

// Catches a wake that has to wait although the one before was not in vain: a lane that has carried all that there was, or has just looked by
// itself, would be the slower the less it has to do. Catches wakes in vain that keep a lane busy.
func TestAWakeWaitsOnlyAfterOneInVain(t *testing.T) {
	t.Parallel()
	const alone, woken = false, true
	const vain, found, refused = "vain", "found", "refused"
	type look struct {
		woken bool
		at    int // milliseconds after the beginning
		finds string
	}
	for about, c := range map[string]struct {
		looks []look
		next  int // where a wake leads to then; 0: at once
	}{
		"it looked by itself":              {[]look{{alone, 1, vain}, {alone, 1001, vain}}, 0},
		"nobody took it, and none woke it": {[]look{{alone, 1, refused}}, 0},
		"it carried all that there was":    {[]look{{woken, 1, found}, {alone, 11, vain}}, 0},
		"and looked once more":             {[]look{{woken, 1, found}, {alone, 11, vain}, {alone, 261, vain}}, 0},
		"nothing was there":                {[]look{{woken, 1, vain}}, 251},
		"nor once more":                    {[]look{{woken, 1, vain}, {alone, 251, vain}}, 251},
		"nobody took it":                   {[]look{{woken, 1, refused}}, 251},
		"nothing more was there":           {[]look{{woken, 1, found}, {alone, 11, vain}, {woken, 20, vain}}, 270},
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
			l.done(began, look.finds == found, look.finds == vain)
		}
		if l.woken(); max(0, l.next.Sub(start)) != time.Duration(c.next)*time.Millisecond {
			t.Errorf("%s: woken, it looks after %v, want %d ms", about, l.next.Sub(start), c.next)
		}
	}
}
