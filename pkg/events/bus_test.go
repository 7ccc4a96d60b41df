package events

import (
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/google/go-cmp/cmp"
)

// Catches a hint that is told on another subject than it is heard on, and one of nobody's making that is believed.
func TestHintsArriveAndForgedOnesDoNot(t *testing.T) {
	t.Parallel()
	n := newNerve(t).start(t)
	teller, hearer := n.connect(t), n.connect(t)
	heard := make(chan lifecycle.Ref, 100)
	if err := hearer.HearChanged(func(run lifecycle.Ref) { heard <- run }); err != nil {
		t.Fatal(err)
	}
	settled(t, hearer)
	id := ref(lifecycle.WF2Des, 1).ID
	for _, rest := range []string{
		"wf2des", "wf2des.1", "wf2des.*", "other." + id, "WF2DES." + id, "wf2des." + id + ".more", "wf2des." + strings.ReplaceAll(id, "-", "_"),
		"wf2des." + strings.ToUpper("0198abcd-0000-7000-8000-000000000001"), "wf2des." + strings.Repeat("x", 36), id,
	} {
		teller.publish("framerun.run.changed."+rest, []byte("forged"))
	}
	want := []lifecycle.Ref{ref(lifecycle.WF2Des, 1), ref(lifecycle.Code2WF, 2)}
	for _, run := range want {
		teller.TellChanged(run)
	}
	if diff := cmp.Diff(want, []lifecycle.Ref{next(t, heard), next(t, heard)}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Catches a writer that tells only half of what a commit means.
func TestToldTellsBoth(t *testing.T) {
	t.Parallel()
	n := newNerve(t).start(t)
	b := n.connect(t)
	heard, rung := make(chan lifecycle.Ref, 1), make(chan lifecycle.Kind, 1)
	err := b.HearOutbox(func(kind lifecycle.Kind) { rung <- kind })
	if err == nil {
		err = b.HearChanged(func(run lifecycle.Ref) { heard <- run })
	}
	if err != nil {
		t.Fatal(err)
	}
	settled(t, b)
	b.Told(ref(lifecycle.Code2WF, 3))
	if run, kind := next(t, heard), next(t, rung); run != ref(lifecycle.Code2WF, 3) || kind != lifecycle.Code2WF {
		t.Errorf("heard of %v, and that runs of kind %q wait", run, kind)
	}
	b.TellWake()
	if kind := next(t, rung); kind != "" {
		t.Errorf("that something waits was heard of kind %q alone", kind)
	}
}

// Catches words that pile up or hold up everything else while nobody takes them, and one that wakes the wrong sleeper.
func TestStrandedBecomesOneToken(t *testing.T) {
	t.Parallel()
	n := newNerve(t).start(t)
	b := n.connect(t)
	stranded, err := b.HearStranded()
	if err != nil {
		t.Fatal(err)
	}
	settled(t, b)
	b.TellWake()
	for range 1000 {
		b.TellStranded()
	}
	eventually(t, "all of them have arrived", func() bool { return b.conn.Stats().InMsgs >= 1000 })
	tokens := 0
	for silent := false; !silent; {
		select {
		case <-stranded:
			tokens++
		case <-time.After(200 * time.Millisecond):
			silent = true
		}
	}
	if tokens < 1 || tokens > 500 { // one, but for those that were still on their way
		t.Errorf("1000 words while nobody looked became %d", tokens)
	}
	b.TellWake()
	eventually(t, "it has left", func() bool { return len(b.hints.waiting) == 0 })
	settled(t, b)
	if len(stranded) != 0 {
		t.Error("a wake of the outbox woke whoever waits for stranded jobs")
	}
	b.TellStranded()
	next(t, stranded)
}

// Catches progress that does not arrive as it was told, and a report that cannot be read but is shown.
func TestProgressRoundTrip(t *testing.T) {
	t.Parallel()
	n := newNerve(t).start(t)
	b := n.connect(t)
	type report struct {
		Run lifecycle.Ref
		P   Progress
	}
	heard := make(chan report, 10)
	if err := b.HearProgress(func(run lifecycle.Ref, p Progress) { heard <- report{run, p} }); err != nil {
		t.Fatal(err)
	}
	settled(t, b)
	version, at := time.Date(2026, 11, 29, 1, 2, 3, 456789000, time.UTC), time.Date(2026, 11, 29, 1, 2, 4, 0, time.UTC)
	want := []report{
		{ref(lifecycle.WF2Des, 1), Progress{Version: version, At: at, Percent: new(0.), Message: "画面を読んでいます \u2028"}},
		{ref(lifecycle.Code2WF, 2), Progress{Version: version, At: at, Percent: new(99.5)}},
		{ref(lifecycle.WF2Des, 1), Progress{Version: version, At: at, Message: "nearly there"}},
	}
	b.publish(Progressed(ref(lifecycle.WF2Des, 1)), []byte(`{"percent":`))
	b.publish(Progressed(ref(lifecycle.WF2Des, 1)), []byte(`{"percent":"a"}`))
	b.publish("framerun.run.progress.wf2des.me", []byte(`{"percent":1}`))
	var got []report
	for _, r := range want {
		b.TellProgress(r.Run, r.P)
	}
	for range want {
		got = append(got, next(t, heard))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Catches a service that cannot start, or whose tellers wait or fail, while NATS is down; and one that stays deaf when it is back.
func TestBusOutlivesItsServer(t *testing.T) {
	t.Parallel()
	n := newNerve(t)
	b := n.connect(t) // nobody listens there yet
	if b.Check() == nil {
		t.Error("a bus without a server says that all is well")
	}
	heard := make(chan lifecycle.Ref, 100)
	if err := b.HearChanged(func(run lifecycle.Ref) { heard <- run }); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for i := range 20_000 { // more than any buffer holds
		b.Told(ref(lifecycle.WF2Des, i))
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("telling nobody took %v", took)
	}
	hearsAgain := func(i int) {
		t.Helper()
		eventually(t, "a hint is heard", func() bool {
			b.TellChanged(ref(lifecycle.Code2WF, i))
			for {
				select {
				case got := <-heard:
					if got == ref(lifecycle.Code2WF, i) {
						return true
					}
				case <-time.After(20 * time.Millisecond):
					return false
				}
			}
		})
	}
	for i := range 2 {
		n.start(t)
		eventually(t, "the bus is connected", func() bool { return b.Check() == nil })
		hearsAgain(i)
		n.stop()
		eventually(t, "the loss is noticed", func() bool { return b.Check() != nil })
	}
}

// Catches a hint that is lost because its teller ended right after it.
func TestCloseTellsWhatWasSaid(t *testing.T) {
	t.Parallel()
	n := newNerve(t).start(t)
	hearer, teller := n.connect(t), n.connect(t)
	heard := make(chan lifecycle.Ref, 1)
	if err := hearer.HearChanged(func(run lifecycle.Ref) { heard <- run }); err != nil {
		t.Fatal(err)
	}
	settled(t, hearer)
	teller.TellChanged(ref(lifecycle.WF2Des, 9))
	teller.Close()
	next(t, heard)
}
