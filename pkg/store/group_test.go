package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Traffic is how many commands about runs of a kind wait for their turn, and how many batches are in flight.
func (s *Store) Traffic(kind lifecycle.Kind) (waiting, flights int) {
	w1, f1 := s.creates[kind].traffic()
	w2, f2 := s.applies[kind].traffic()
	return w1 + w2, f1 + f2
}

func (g *group[C, R]) traffic() (waiting, flights int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting), g.flights
}

// parcel is a command that nothing is known of but its key.
type parcel struct {
	n   int
	key string
}

// flight is a batch that a group has set off with and that stays in flight until the test lets it land.
type flight struct {
	batch []parcel
	ctx   context.Context
	land  chan func([]parcel) []answer[int] // what becomes of the batch
	ended bool
}

// numbers answers each command with its own number.
func numbers(batch []parcel) []answer[int] {
	answers := make([]answer[int], len(batch))
	for i, p := range batch {
		answers[i].value = p.n
	}
	return answers
}

func crash([]parcel) []answer[int] { panic("crash") }

// airport is a group whose flights are in the test's hands. It lives inside a synctest bubble.
type airport struct {
	*group[parcel, int]

	books sync.Mutex
	flown []*flight // in the order in which they set off
}

func newAirport() *airport {
	a := &airport{}
	a.group = &group[parcel, int]{key: func(p parcel) string { return p.key }, patience: time.Minute, carry: a.fly}
	return a
}

func (a *airport) fly(ctx context.Context, batch []parcel) []answer[int] {
	f := &flight{batch: batch, ctx: ctx, land: make(chan func([]parcel) []answer[int], 1)}
	a.books.Lock()
	a.flown = append(a.flown, f)
	a.books.Unlock()
	defer func() {
		a.books.Lock()
		defer a.books.Unlock()
		f.ended = true
	}()
	select {
	case end := <-f.land:
		return end(batch)
	case <-ctx.Done():
		answers, _ := everyone[int](batch, unknown("fly", ctx.Err()))
		return answers
	}
}

// caller is somebody who has asked, and what was answered.
type caller struct {
	leave context.CancelFunc
	back  bool // has an answer
	value int
	err   error
}

// told is the answer in a word.
func (c *caller) told() string {
	switch {
	case !c.back:
		return "nothing yet"
	case errors.Is(c.err, lifecycle.ErrUnavailable):
		return "not stored"
	case errors.Is(c.err, lifecycle.ErrOutcomeUnknown):
		return "unknown"
	case c.err != nil:
		return c.err.Error()
	}
	return fmt.Sprint(c.value)
}

// ask sends a caller and comes back when she waits, flies or has her answer.
func (a *airport) ask(n int, key string) *caller {
	ctx, leave := context.WithCancel(context.Background())
	c := &caller{leave: leave}
	go func() {
		defer leave()
		defer func() {
			if crashed := recover(); crashed != nil {
				c.err = fmt.Errorf("%v", crashed)
			}
			c.back = true
		}()
		c.value, c.err = a.do(ctx, parcel{n, key})
	}()
	synctest.Wait()
	return c
}

// askAll sends callers number first to last, one after the other, each with a key of her own.
func (a *airport) askAll(first, last int) map[int]*caller {
	callers := map[int]*caller{}
	for n := first; n <= last; n++ {
		callers[n] = a.ask(n, fmt.Sprint(n))
	}
	return callers
}

// log is the batches that have set off so far, like "1 2 3,4,5".
func (a *airport) log() string {
	a.books.Lock()
	defer a.books.Unlock()
	var log []string
	for _, f := range a.flown {
		var numbers []string
		for _, p := range f.batch {
			numbers = append(numbers, fmt.Sprint(p.n))
		}
		log = append(log, strings.Join(numbers, ","))
	}
	return strings.Join(log, " ")
}

// land ends flights, all at the same moment, and waits until everybody has done what follows from it.
func (a *airport) land(end func([]parcel) []answer[int], flights ...int) {
	for _, n := range flights {
		a.clear(end, n)
	}
	synctest.Wait()
}

// clear lets a flight land, if it has not yet.
func (a *airport) clear(end func([]parcel) []answer[int], n int) {
	a.books.Lock()
	defer a.books.Unlock()
	if n >= len(a.flown) {
		return // the log will show it
	}
	select {
	case a.flown[n].land <- end:
	default:
	}
}

func (a *airport) count() int {
	a.books.Lock()
	defer a.books.Unlock()
	return len(a.flown)
}

func (a *airport) flight(n int) *flight {
	a.books.Lock()
	defer a.books.Unlock()
	return a.flown[n]
}

func (a *airport) mustLog(t *testing.T, want string) {
	t.Helper()
	if got := a.log(); got != want {
		t.Errorf("flights %q, want %q", got, want)
	}
}

func mustTell(t *testing.T, callers map[int]*caller, want map[int]string) {
	t.Helper()
	got := map[int]string{}
	for n, c := range callers {
		got[n] = c.told()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("callers were told (-want +got):\n%s", diff)
	}
}

// mustBeEmpty fails unless the group remembers nothing and has room for the next caller.
func (a *airport) mustBeEmpty(t *testing.T) {
	t.Helper()
	if a.flights != 0 || a.crowds != 0 || a.called != nil || len(a.waiting) != 0 || len(a.keys) != 0 {
		t.Errorf("left behind: %d flights, %d crowds, called %v, %d waiting, keys %v", a.flights, a.crowds, a.called, len(a.waiting), a.keys)
	}
	for _, m := range a.waiting[:cap(a.waiting)] {
		if m != nil {
			t.Error("a member is kept in memory")
			break
		}
	}
}

// closed is an airport with four callers in flight, number 1 to 4, so that whoever comes now waits.
func closed(t *testing.T) *airport {
	t.Helper()
	a := newAirport()
	a.askAll(1, 4)
	a.mustLog(t, "1 2 3 4")
	return a
}

// Catches a first caller who waits for company, company that is left behind or out of order, a fifth batch of one, a second crowd beside
// the first, and answers that go to the wrong caller.
func TestCallersWhoComeTogetherFlyTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := closed(t)
		callers := a.askAll(5, 8)
		a.mustLog(t, "1 2 3 4")
		a.land(numbers, 1)
		a.mustLog(t, "1 2 3 4 5,6,7,8")
		callers[9], callers[10] = a.ask(9, "9"), a.ask(10, "10")
		a.land(numbers, 0, 2, 3)
		a.mustLog(t, "1 2 3 4 5,6,7,8")
		mustTell(t, callers, map[int]string{5: "nothing yet", 6: "nothing yet", 7: "nothing yet", 8: "nothing yet", 9: "nothing yet", 10: "nothing yet"})
		a.land(numbers, 4)
		a.mustLog(t, "1 2 3 4 5,6,7,8 9,10")
		a.land(numbers, 5)
		mustTell(t, callers, map[int]string{5: "5", 6: "6", 7: "7", 8: "8", 9: "9", 10: "10"})
		a.mustBeEmpty(t)
		a.ask(11, "11")
		a.mustLog(t, "1 2 3 4 5,6,7,8 9,10 11")
		a.land(numbers, 6)
	})
}

// Catches many who wait for a crowd in flight although they are one themselves, few who do not wait for it, and a third crowd in flight.
func TestManyNeedNotWaitForACrowd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := closed(t)
		a.askAll(5, 6)
		a.land(numbers, 0, 1, 2, 3)
		a.mustLog(t, "1 2 3 4 5,6")
		a.askAll(101, 100+enough-1)
		a.mustLog(t, "1 2 3 4 5,6")
		a.askAll(100+enough, 100+enough)
		if a.count() != 6 || len(a.flight(5).batch) != enough {
			t.Fatalf("%d wait beside a crowd, and %d flights are in the air", enough, a.count()-4)
		}
		a.askAll(201, 200+2*enough)
		if a.count() != 6 {
			t.Fatalf("a third crowd is in the air")
		}
		a.land(numbers, 4)
		if a.count() != 7 || len(a.flight(6).batch) != 2*enough {
			t.Fatal("one of two crowds has landed, and those who wait do not set off")
		}
		a.land(numbers, 5, 6)
		a.mustBeEmpty(t)
	})
}

// Catches a flood of single batches beside a crowd, because many wait for one run that is busy and cannot come along.
func TestManyWhoWaitForOneRunBringNoFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := closed(t)
		a.ask(5, "run")
		a.ask(6, "another")
		a.land(numbers, 0, 1, 2, 3)
		a.mustLog(t, "1 2 3 4 5,6")
		for n := range 2 * enough {
			a.ask(100+n, "run")
		}
		a.askAll(300, 400)
		if beside := a.count() - 5; beside != singlesMost {
			t.Errorf("%d batches are in flight beside a crowd", beside)
		}
		for i := 4; i < a.count(); i++ {
			a.land(numbers, i)
		}
		a.mustBeEmpty(t)
	})
}

// Catches a crowd that is torn apart because several flights land before the one who was called has woken.
func TestLandingsAtOnceCallOneLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := closed(t)
		a.askAll(5, 20)
		a.land(numbers, 0, 1, 2, 3)
		a.mustLog(t, "1 2 3 4 5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20")
		a.land(numbers, 4)
		a.mustBeEmpty(t)
	})
}

// Catches a statement that would meet one row twice, commands that wait for each other's row in the middle of a batch, a later command
// about a run that overtakes an earlier one, one that is forgotten, and one whose run is busy that holds up the others.
func TestOneKeyFliesOneAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAirport()
		for n, key := range []string{"run", "run", "other", "run", "another"} {
			a.ask(1+n, key)
		}
		a.mustLog(t, "1 3 5")
		a.land(numbers, 1)
		a.mustLog(t, "1 3 5")
		a.ask(6, "third")
		a.ask(7, "run")
		a.ask(8, "fourth")
		a.mustLog(t, "1 3 5 6 8")
		a.ask(9, "third")
		a.ask(10, "fifth")
		a.land(numbers, 0)
		a.mustLog(t, "1 3 5 6 8 2,10")
		a.land(numbers, 2, 3, 4)
		a.land(numbers, 5)
		a.mustLog(t, "1 3 5 6 8 2,10 4,9")
		a.land(numbers, 6)
		a.mustLog(t, "1 3 5 6 8 2,10 4,9 7")
		a.land(numbers, 7)
		a.mustBeEmpty(t)
	})
}

// Catches a batch or a crowd that grows without bound, one that is turned away although there is room, and an overflow that is stored.
func TestBatchesAndCrowdsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := closed(t)
		callers := a.askAll(5, 4+waitingMost)
		tooMuch := a.ask(9999, "9999")
		if tooMuch.told() != "not stored" {
			t.Errorf("one more than may wait was told %s", tooMuch.told())
		}
		callers[5].leave()
		synctest.Wait()
		if again := a.ask(9999, "9999"); again.back {
			t.Errorf("there was room for one, but she was told %s", again.told())
		}
		a.land(numbers, 0, 1, 2, 3)
		for i := 4; i < a.count(); i++ {
			if size := len(a.flight(i).batch); size != batchMost {
				t.Fatalf("flight %d has %d of %d", i, size, batchMost)
			}
			a.land(numbers, i)
		}
		if flights := a.count() - 4; flights != waitingMost/batchMost {
			t.Errorf("%d flights", flights)
		}
		delete(callers, 5)
		for n, c := range callers {
			if c.told() != fmt.Sprint(n) {
				t.Fatalf("%d was told %s", n, c.told())
			}
		}
		a.mustBeEmpty(t)
	})
}

// Catches a caller who is stored although she left before her turn, and a way that stays closed behind her.
func TestLeavingBeforeTheTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := closed(t)
		callers := a.askAll(5, 8)
		callers[6].leave()
		callers[8].leave()
		synctest.Wait()
		mustTell(t, callers, map[int]string{5: "nothing yet", 6: "not stored", 7: "nothing yet", 8: "not stored"})
		a.land(numbers, 0)
		a.mustLog(t, "1 2 3 4 5,7")
		a.land(numbers, 1, 2, 3, 4)
		mustTell(t, callers, map[int]string{5: "5", 6: "not stored", 7: "7", 8: "not stored"})
		a.mustBeEmpty(t)

		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.do(gone, parcel{9, "9"}); !errors.Is(err, lifecycle.ErrUnavailable) {
			t.Errorf("a caller who was gone before she came: %v", err)
		}
		a.mustLog(t, "1 2 3 4 5,7")
	})
}

// The caller who is called to lead leaves, and wakes when all who were in flight have landed. Catches followers who are left behind.
func TestLeavingWhenCalledToLead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := closed(t)
		callers := a.askAll(5, 8)
		a.mu.Lock()
		a.called = a.waiting[0]
		a.mu.Unlock()
		a.land(numbers, 0, 1, 2, 3)
		a.mustLog(t, "1 2 3 4")
		callers[5].leave()
		synctest.Wait()
		a.mustLog(t, "1 2 3 4 6,7,8")
		a.land(numbers, 4)
		mustTell(t, callers, map[int]string{5: "not stored", 6: "6", 7: "7", 8: "8"})
		a.mustBeEmpty(t)
	})
}

// The caller leaves at the moment in which she is called. Catches one who is stored for nobody.
func TestLeavingWhileCalledToLead(t *testing.T) {
	t.Parallel()
	for range 20 { // select chooses at random between the two
		synctest.Test(t, func(t *testing.T) {
			a := newAirport()
			ctx, leave := context.WithCancel(t.Context())
			a.key = func(parcel) string { leave(); return "run" } // asked for by the one who calls
			if _, err := a.do(ctx, parcel{}); !errors.Is(err, lifecycle.ErrUnavailable) {
				t.Errorf("told %v, want ErrUnavailable", err)
			}
			a.mustLog(t, "")
			a.mustBeEmpty(t)
		})
	}
}

// Catches a deadline of one that ends the work of the others, one who is kept although she has left, and "not stored" for what may be.
func TestLeavingInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := closed(t)
		callers := a.askAll(5, 8)
		a.land(numbers, 0, 1, 2, 3)
		a.mustLog(t, "1 2 3 4 5,6,7,8")
		callers[5].leave() // she leads
		callers[7].leave()
		synctest.Wait()
		mustTell(t, callers, map[int]string{5: "nothing yet", 6: "nothing yet", 7: "unknown", 8: "nothing yet"})
		a.land(numbers, 4)
		mustTell(t, callers, map[int]string{5: "5", 6: "6", 7: "unknown", 8: "8"})

		alone := a.ask(9, "9")
		alone.leave()
		synctest.Wait()
		if alone.told() != "unknown" || a.flight(5).ctx.Err() == nil {
			t.Errorf("one who leaves her own flight was told %s", alone.told())
		}
		a.mustBeEmpty(t)
	})
}

// Catches a call that hangs for as long as its flight and the flights before it, and a group that a hanging server blocks for ever.
func TestPatienceEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := closed(t)
		<-time.After(a.patience / 2)
		callers := a.askAll(5, 7)
		<-time.After(a.patience / 4)
		callers[8] = a.ask(8, "8")
		a.land(numbers, 0)
		a.mustLog(t, "1 2 3 4 5,6,7,8")
		callers[9] = a.ask(9, "9")
		<-time.After(a.patience/4 + time.Second)
		synctest.Wait()
		if a.flight(1).ctx.Err() == nil || a.flight(4).ctx.Err() != nil {
			t.Error("after a minute the first flights should have ended, and only they")
		}
		<-time.After(a.patience / 2)
		synctest.Wait()
		mustTell(t, callers, map[int]string{5: "unknown", 6: "unknown", 7: "unknown", 8: "unknown", 9: "nothing yet"})
		a.mustLog(t, "1 2 3 4 5,6,7,8 9")
		a.land(numbers, 5)

		a.askAll(10, 13)
		a.land(func(batch []parcel) []answer[int] { // deaf to the end of the patience
			<-time.After(2 * a.patience)
			return numbers(batch)
		}, 6, 7, 8, 9)
		late := a.ask(14, "14")
		<-time.After(a.patience)
		synctest.Wait()
		if late.told() != "not stored" {
			t.Errorf("one whose turn did not come was told %s", late.told())
		}
		<-time.After(a.patience)
		synctest.Wait()
		a.mustBeEmpty(t)
	})
}

// Catches a bug in one batch that leaves its members without an answer, tells them more than is known, or blocks all who come after.
func TestCrashInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := closed(t)
		callers := a.askAll(5, 7)
		a.land(numbers, 0, 1, 2, 3)
		callers[8], callers[9] = a.ask(8, "8"), a.ask(9, "9")
		a.land(crash, 4)
		mustTell(t, callers, map[int]string{5: "crash", 6: "unknown", 7: "unknown", 8: "nothing yet", 9: "nothing yet"})
		a.land(func(batch []parcel) []answer[int] { return numbers(batch[:1]) }, 5)
		mustTell(t, callers, map[int]string{5: "crash", 6: "unknown", 7: "unknown", 8: "8", 9: "unknown"})
		a.mustLog(t, "1 2 3 4 5,6,7 8,9")
		a.mustBeEmpty(t)
	})
}

// happening is one thing in a random schedule.
type happening struct {
	what string // ask, leave, land, refuse, crash
	n    int    // whose key, which caller, which flight
}

// Whatever happens in whatever order: every command is carried once, or not at all and its caller is told so; answers go to the right
// caller; no two commands of one key, no second crowd and no fifth single are in flight together; commands of one key keep their order;
// whoever has a key of her own flies with the very next batch; nothing is left behind. Catches what nobody has thought of.
func TestAnySchedule(t *testing.T) {
	t.Parallel()
	things := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) happening {
		return happening{
			rapid.SampledFrom([]string{"ask", "ask", "ask", "ask", "leave", "land", "land", "refuse", "crash"}).Draw(t, "what"),
			rapid.IntRange(0, 30).Draw(t, "n"),
		}
	}), 1, 80)
	rapid.Check(t, func(r *rapid.T) {
		schedule := things.Draw(r, "schedule")
		var wrong []string
		synctest.Test(t, func(t *testing.T) { wrong = play(t, schedule) })
		if len(wrong) > 0 {
			r.Fatalf("%s", strings.Join(wrong, "\n"))
		}
	})
}

func refuse(batch []parcel) []answer[int] {
	answers := numbers(batch)
	for i, p := range batch {
		answers[i] = answer[int]{err: fmt.Errorf("refused %d", p.n)}
	}
	return answers
}

var ends = map[string]func([]parcel) []answer[int]{"land": numbers, "refuse": refuse, "crash": crash}

// play has a schedule happen and says what was wrong about it.
func play(t *testing.T, schedule []happening) (wrong []string) {
	a := newAirport()
	var callers []*caller
	var next []int // the flight that each caller should take, -1 for any
	for _, h := range schedule {
		switch flights := a.count(); {
		case h.what == "ask":
			synctest.Wait()
			n, key, flight := len(callers), fmt.Sprint("run ", h.n%2), -1 // a run of which many speak, one after the other
			if h.n > 8 {
				key, flight = fmt.Sprint("run of ", n), a.count()
			}
			callers, next = append(callers, a.ask(n, key)), append(next, flight)
			wrong = append(wrong, a.crowded()...)
		case h.what == "leave" && len(callers) > 0:
			callers[h.n%len(callers)].leave()
		case h.what != "leave" && flights > 0:
			a.clear(ends[h.what], max(0, flights-1-h.n%6))
		}
	}
	synctest.Wait()
	for n := 0; n < a.count(); n++ {
		a.land(numbers, n)
	}
	a.mustBeEmpty(t)
	return append(wrong, a.judge(callers, next)...)
}

// crowded says what is wrong about the batches that are in flight now.
func (a *airport) crowded() (wrong []string) {
	singles, crowds := 0, 0
	keys := map[string]bool{}
	for _, f := range a.flown {
		if f.ended {
			continue
		}
		for _, p := range f.batch {
			if keys[p.key] {
				wrong = append(wrong, fmt.Sprintf("two of the key %q are in flight", p.key))
			}
			keys[p.key] = true
		}
		if len(f.batch) > 1 {
			crowds++
		} else {
			singles++
		}
	}
	if crowds > 1 || singles > singlesMost {
		wrong = append(wrong, fmt.Sprintf("%d crowds and %d singles in flight", crowds, singles))
	}
	return wrong
}

// judge holds what the callers were told against what was carried.
func (a *airport) judge(callers []*caller, next []int) (wrong []string) {
	took, last := map[int][]int{}, map[string]int{}
	for n, f := range a.flown {
		for _, p := range f.batch {
			took[p.n] = append(took[p.n], n)
			if last[p.key] > p.n {
				wrong = append(wrong, fmt.Sprintf("%d has overtaken %d of the same key", last[p.key], p.n))
			}
			last[p.key] = p.n
		}
	}
	for n, c := range callers {
		allowed := []string{fmt.Sprint(n), fmt.Sprint("refused ", n), "unknown", "crash"}
		if len(took[n]) == 0 {
			allowed = []string{"not stored"}
		}
		if !slices.Contains(allowed, c.told()) || len(took[n]) > 1 {
			wrong = append(wrong, fmt.Sprintf("%d took the flights %v and was told %s", n, took[n], c.told()))
		}
		if len(took[n]) == 1 && next[n] >= 0 && took[n][0] != next[n] {
			wrong = append(wrong, fmt.Sprintf("%d could have taken flight %d, but took %d", n, next[n], took[n][0]))
		}
	}
	return wrong
}
