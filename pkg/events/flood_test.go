package events

import (
	"bytes"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
)

const flood = 4 * waitingMessages

// A flood that nobody can hear in time is dropped beyond a bound, is told of in a few lines, and what comes afterwards is heard. Catches
// the client's own bounds, which are the memory of a small machine, and a log that drowns with the messages.
func TestAFloodIsBounded(t *testing.T) {
	t.Parallel()
	n, log := newNerve(t).start(t), &lines{}
	teller := n.connect(t)
	hearer, err := Connect(n.url(), "test", slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hearer.Close)
	first, last := ref(lifecycle.WF2Des, 1), ref(lifecycle.WF2Des, 2)
	var waited, after atomic.Int64
	err = hearer.HearChanged(func(run lifecycle.Ref) {
		switch {
		case run == last:
			after.Add(1)
		case hearer.conn.Stats().InMsgs < flood: // it is still coming, and this takes long
			<-time.After(20 * time.Microsecond)
		default:
			waited.Add(1)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	settled(t, hearer)
	for range flood {
		if err := teller.conn.Publish(Changed(first), nil); err != nil { // TellChanged would drop some of it before
			t.Fatal(err)
		}
	}
	settled(t, teller)
	eventually(t, "the flood has come", func() bool { return hearer.conn.Stats().InMsgs >= flood })
	eventually(t, "what is told afterwards is heard", func() bool {
		teller.TellChanged(last)
		return after.Load() > 0
	})
	if n := waited.Load(); n > waitingMessages+1 { // and the one at hand
		t.Errorf("%d of %d messages waited", n, flood)
	}
	if n := log.count(); n < 1 || n > 3 {
		t.Errorf("the flood is told of in %d lines, such as %.300s", n, log.text.String())
	}
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte("\n"))
}
