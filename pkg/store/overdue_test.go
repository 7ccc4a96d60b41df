package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"github.com/google/go-cmp/cmp"
)

var backend = lifecycle.Actor{Voice: lifecycle.Backend, Name: platform.UserWorker}

// openStates are what deadlines are about, by kind.
var openStates = map[lifecycle.Kind][]lifecycle.State{
	lifecycle.WF2Des:  {lifecycle.Parsing, lifecycle.AwaitingConfirm, lifecycle.Assembling},
	lifecycle.Code2WF: {lifecycle.Processing},
}

var hours = lifecycle.Deadlines{lifecycle.Parsing: time.Hour, lifecycle.AwaitingConfirm: 2 * time.Hour, lifecycle.Assembling: 3 * time.Hour,
	lifecycle.Processing: 4 * time.Hour}

// ago sets the run's last change back by PostgreSQL's clock.
func (w *world) ago(t *testing.T, run lifecycle.Run, d time.Duration) {
	t.Helper()
	w.exec(t, `UPDATE `+string(run.Kind)+` SET updated_at = now() - $2 * interval '1 microsecond' WHERE id = $1`, run.ID, d.Microseconds())
}

// heardAgo notes a pulse of the past.
func (w *world) heardAgo(t *testing.T, run lifecycle.Run, attempt int, d time.Duration) {
	t.Helper()
	w.exec(t, `INSERT INTO run_pulse VALUES ($1, $2, $3, now() - $4 * interval '1 microsecond')`, run.Kind, run.ID, attempt, d.Microseconds())
}

// overdue are the ids of all that is overdue, in the order of the list, read in pages of two.
func (w *world) overdue(t *testing.T, deadlines lifecycle.Deadlines) (ids []string) {
	t.Helper()
	for last := (store.OverdueRun{}); ; {
		page, err := w.Overdue(t.Context(), deadlines, last, 2)
		must(t, err)
		for _, run := range page {
			ids = append(ids, run.ID)
		}
		if len(page) < 2 {
			return ids
		}
		last = page[1]
	}
}

// Catches a run that is listed before its time or not at all, under another state's deadline, out of order, twice or lost between two
// pages; a deadline that is off and still counts; and a look that changes something.
func TestOverdueListsWhatIsSilent(t *testing.T) {
	t.Parallel()
	w := open(t)
	var want []string
	at := 100 * time.Hour
	late := func(run lifecycle.Run) {
		at -= time.Hour
		w.ago(t, run, at)
		want = append(want, run.ID)
	}
	for range 3 {
		for kind, states := range openStates {
			for _, state := range states {
				late(w.in(t, state, w.creation(kind)))
				w.ago(t, w.in(t, state, w.creation(kind)), hours[state]-time.Minute)
			}
			w.ago(t, w.in(t, lifecycle.Failed, w.creation(kind)), at)
			w.ago(t, w.in(t, lifecycle.Completed, w.creation(kind)), at)
		}
	}
	w.unchanged(t, "a look", func() {
		if diff := cmp.Diff(want, w.overdue(t, hours)); diff != "" {
			t.Errorf("overdue (-want +got):\n%s", diff)
		}
		for _, off := range []lifecycle.Deadlines{nil, {lifecycle.Parsing: 0, lifecycle.Processing: 200 * time.Hour}} {
			if got := w.overdue(t, off); len(got) > 0 {
				t.Errorf("without a deadline: %v", got)
			}
		}
	})
	all, err := w.Overdue(t.Context(), lifecycle.Deadlines{lifecycle.Processing: time.Hour}, store.OverdueRun{}, 1)
	must(t, err)
	run := w.read(t, all[0].Ref)
	if diff := cmp.Diff([]store.OverdueRun{{Ref: run.Ref, Tenant: run.Tenant, State: lifecycle.Processing, Attempt: 1, UpdatedAt: run.UpdatedAt,
		Since: run.UpdatedAt, Limit: time.Hour}}, all); diff != "" {
		t.Errorf("what is told of one (-want +got):\n%s", diff)
	}
}

// Catches progress that does not push the deadline, or pushes it for ever; an older worker's that pushes the newer one's; and a worker's
// that pushes the designer's.
func TestProgressPushesTheDeadline(t *testing.T) {
	t.Parallel()
	w := open(t)
	for kind, states := range openStates {
		for _, state := range states {
			silent, spoke, older := w.in(t, state, w.creation(kind)), w.in(t, state, w.creation(kind)), w.in(t, state, w.creation(kind))
			for _, run := range []lifecycle.Run{silent, spoke, older} {
				w.ago(t, run, 10*time.Hour)
			}
			w.heardAgo(t, silent, 1, hours[state])
			w.heardAgo(t, spoke, 1, hours[state]-time.Minute)
			w.exec(t, `UPDATE `+string(kind)+` SET attempt = 2 WHERE id = $1`, older.ID)
			w.heardAgo(t, older, 1, time.Minute)
			want := []string{silent.ID, spoke.ID, older.ID}
			if state.Working() {
				want = []string{silent.ID, older.ID}
			}
			got := w.overdue(t, lifecycle.Deadlines{state: hours[state]})
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", kind, state, diff)
			}
			w.heardAndEnded(t, spoke, state)
		}
	}
}

// heardAndEnded holds the guard against the list: it must say the same of a run that spoke.
func (w *world) heardAndEnded(t *testing.T, spoke lifecycle.Run, state lifecycle.State) {
	t.Helper()
	seen := store.OverdueRun{Ref: spoke.Ref, State: state, Attempt: 1, Limit: hours[state]}
	want := lifecycle.Applied
	if state.Working() {
		want = lifecycle.Spared
	}
	if got := w.apply(t, seen.End(backend, "Too late.")); got.Outcome != want {
		t.Errorf("the end of a %s run whose worker has spoken in time: %s, want %s", state, got.Outcome, want)
	}
}

// Catches an ending that is not the backend's, that says something else than it was told, or that leaves the node blocked; and a late
// worker who is told anything but the truth.
func TestEndOfASilentRun(t *testing.T) {
	t.Parallel()
	w := open(t)
	for kind, states := range openStates {
		for _, state := range states {
			asked := w.creation(kind)
			run := w.in(t, state, asked)
			tick := lifecycle.Deadlines{state: time.Millisecond}
			until(t, "the run is overdue", func() bool { return slices.Contains(w.overdue(t, tick), run.ID) })
			list, err := w.Overdue(t.Context(), tick, store.OverdueRun{}, 1)
			must(t, err)
			got := w.apply(t, list[0].End(backend, "Too late."))
			if got.Outcome != lifecycle.Applied || got.Run.State != lifecycle.Failed || *got.Run.ErrorMessage != "Too late." {
				t.Errorf("%s: %+v", state, got)
			}
			lines := w.timeline(t, run.Ref)
			if last := lines[len(lines)-1]; last.What != lifecycle.WasFailed || last.By != backend || last.From != state || last.Attempt != 1 {
				t.Errorf("%s: the timeline ends with %+v", state, last)
			}
			if got := w.apply(t, command(lifecycle.Complete, run)); got.Outcome != lifecycle.AlreadyTerminal || got.Run.State != lifecycle.Failed {
				t.Errorf("%s: a late worker is told %s, %s", state, got.Outcome, got.Run.State)
			}
			if noted, err := w.Pulse(t.Context(), run.Ref, 1); noted || err != nil {
				t.Errorf("%s: a late worker's pulse: %t, %v", state, noted, err)
			}
			w.mustReplay(t, asked.Run)
			again := w.creation(kind)
			again.Run.WFNodeID = asked.Run.WFNodeID
			w.apply(t, command(lifecycle.Fail, w.create(t, again))) // the node is free at once
		}
	}
}

// Whatever happens between the look and the end of a reaper that sleeps there, it is not the reaper who decides. Catches a guard that
// forgets the state, the attempt or the silence, and a spared run that has changed or whose timeline speaks of it.
func TestReaperThatSleepsBetweenLookAndEnd(t *testing.T) {
	t.Parallel()
	w := open(t)
	for name, tc := range map[string]struct {
		kind  lifecycle.Kind
		state lifecycle.State
		what  func(lifecycle.Run)
	}{
		"parsed":    {lifecycle.WF2Des, lifecycle.Parsing, func(r lifecycle.Run) { w.apply(t, command(lifecycle.Parsed, r)) }},
		"confirmed": {lifecycle.WF2Des, lifecycle.AwaitingConfirm, func(r lifecycle.Run) { w.apply(t, command(lifecycle.Confirm, r)) }},
		"requeued":  {lifecycle.WF2Des, lifecycle.Assembling, func(r lifecycle.Run) { w.apply(t, command(lifecycle.Requeue, r)) }},
		"cancelled": {lifecycle.WF2Des, lifecycle.Assembling, func(r lifecycle.Run) { w.apply(t, command(lifecycle.Cancel, r)) }},
		"completed": {lifecycle.Code2WF, lifecycle.Processing, func(r lifecycle.Run) { w.apply(t, command(lifecycle.Complete, r)) }},
		"failed":    {lifecycle.Code2WF, lifecycle.Processing, func(r lifecycle.Run) { w.apply(t, command(lifecycle.Fail, r)) }},
		"heard": {lifecycle.Code2WF, lifecycle.Processing, func(r lifecycle.Run) {
			if noted, err := w.Pulse(t.Context(), r.Ref, 1); !noted || err != nil {
				t.Errorf("a pulse in time: %t, %v", noted, err)
			}
		}},
	} {
		run := w.in(t, tc.state, w.creation(tc.kind))
		w.ago(t, run, 10*time.Hour)
		list, err := w.Overdue(t.Context(), lifecycle.Deadlines{tc.state: hours[tc.state]}, store.OverdueRun{}, 10)
		must(t, err)
		if len(list) != 1 || list[0].Ref != run.Ref {
			t.Fatalf("%s: the look shows %v", name, list)
		}
		tc.what(run)
		w.unchanged(t, name+" in between", func() {
			got := w.apply(t, list[0].End(backend, "Too late."))
			if diff := cmp.Diff(store.Applied{Outcome: lifecycle.Spared, Run: w.read(t, run.Ref)}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
}

// Catches an end that was decided by a pulse read before the lock was had, and a worker who is told to go on with a run that ends.
func TestPulseAndEndWaitForEachOther(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, kind := range lifecycle.Kinds {
		state := openStates[kind][0]
		run := w.in(t, state, w.creation(kind))
		w.ago(t, run, 10*time.Hour)
		end := store.OverdueRun{Ref: run.Ref, State: state, Attempt: 1, Limit: time.Hour}.End(backend, "Too late.")

		tx := w.sql.MustBegin()
		tx.MustExec(`SELECT FROM `+string(kind)+` WHERE id = $1 FOR SHARE`, run.ID)
		tx.MustExec(`INSERT INTO run_pulse VALUES ($1, $2, 1, clock_timestamp())`, kind, run.ID)
		told := make(chan store.Applied, 1)
		go func() { got, _ := w.Apply(t.Context(), end); told <- got }()
		w.untilBlocked(t)
		must(t, tx.Commit())
		if got := <-told; got.Outcome != lifecycle.Spared {
			t.Errorf("%s: a run whose worker spoke while the reaper waited: %q", kind, got.Outcome)
		}

		tx = w.sql.MustBegin()
		tx.MustExec(`UPDATE `+string(kind)+` SET attempt = 2 WHERE id = $1`, run.ID)
		noted := make(chan bool, 1)
		go func() { n, _ := w.Pulse(t.Context(), run.Ref, 1); noted <- n }()
		w.untilBlocked(t)
		must(t, tx.Commit())
		if <-noted {
			t.Errorf("%s: a worker is told to go on with an attempt that is over", kind)
		}
	}
}

// melee is one run over which reapers, its worker and the designer fight at the same moment.
type melee struct {
	*world
	limit time.Duration
	run   lifecycle.Run

	mu    sync.Mutex
	ended []string // who was told of having ended the run
	noted bool     // the worker was told to go on
}

func (m *melee) told(who string, got store.Applied, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && got.Outcome == lifecycle.Applied && got.Run.Ended() {
		m.ended = append(m.ended, who)
	}
}

func (m *melee) reap(t *testing.T) {
	for range 2 {
		list, err := m.Overdue(t.Context(), lifecycle.Deadlines{m.run.State: m.limit}, store.OverdueRun{}, 100)
		if err != nil {
			t.Error(err)
		}
		for _, r := range list {
			if r.Ref == m.run.Ref {
				got, err := m.Apply(t.Context(), r.End(backend, "Too late."))
				m.told("the reaper", got, err)
			}
		}
	}
}

func (m *melee) do(t *testing.T, verb lifecycle.Verb) {
	got, err := m.Apply(t.Context(), command(verb, m.run))
	m.told(string(verb), got, err)
}

func (m *melee) speak(t *testing.T) {
	noted, err := m.Pulse(t.Context(), m.run.Ref, m.run.Attempt)
	if err != nil {
		t.Error(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noted = m.noted || noted
}

// Two reapers, webhooks, progress and a designer at the same instant: at most one of them ends the run, exactly the one who is told so,
// and no run ends for its silence sooner than its deadline after a worker who was told to go on. Catches a guard that is not repeated
// under the lock.
func TestReapersWebhooksProgressAndPeopleAtOnce(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	w := open(t)
	endings := map[string]int{}
	for range 150 {
		kind := lifecycle.Kinds[dice.IntN(2)]
		state := openStates[kind][dice.IntN(len(openStates[kind]))]
		asked := w.creation(kind)
		m := &melee{world: w, limit: 30 * time.Millisecond, run: w.in(t, state, asked)}
		until(t, "the run is overdue", func() bool {
			return slices.Contains(w.overdue(t, lifecycle.Deadlines{state: m.limit}), m.run.ID)
		})
		m.fight(t, dice)
		endings[m.mustHoldTogether(t)]++
		w.mustReplay(t, asked.Run)
		if run := w.read(t, m.run.Ref); !run.Ended() {
			w.apply(t, command(lifecycle.Fail, run))
		}
	}
	w.mustHold(t)
	if endings["the reaper"] == 0 || len(endings) < 4 {
		t.Errorf("the contest was none: %v", endings)
	}
}

func (m *melee) fight(t *testing.T, dice *rand.Rand) {
	rivals := []func(){func() { m.reap(t) }, func() { m.reap(t) }}
	for _, verb := range []lifecycle.Verb{lifecycle.Complete, lifecycle.Fail, lifecycle.Cancel, lifecycle.Parsed, lifecycle.Confirm} {
		if dice.IntN(4) == 0 {
			rivals = append(rivals, func() { m.do(t, verb) })
		}
	}
	if dice.IntN(2) == 0 {
		rivals = append(rivals, func() { m.speak(t) }, func() { m.speak(t) })
	}
	start := make(chan struct{})
	var all sync.WaitGroup
	for _, rival := range rivals {
		all.Go(func() { <-start; rival() })
	}
	close(start)
	all.Wait()
}

// mustHoldTogether fails unless what everybody was told and what is stored are one story. It says who ended the run.
func (m *melee) mustHoldTogether(t *testing.T) string {
	t.Helper()
	run := m.read(t, m.run.Ref)
	var steps []lifecycle.Event
	for _, line := range m.timeline(t, m.run.Ref) {
		if line.Outcome == lifecycle.Applied && !line.To.Open() {
			steps = append(steps, line)
		}
	}
	if len(m.ended) != len(steps) || len(steps) > 1 || run.Ended() != (len(steps) == 1) {
		t.Fatalf("%v were told that they ended the run, which is %s, and the timeline holds %+v", m.ended, run.State, steps)
	}
	if len(steps) == 0 {
		return "nobody"
	}
	if byReaper := steps[0].By == backend; byReaper != (m.ended[0] == "the reaper") {
		t.Errorf("%s was told of having ended the run, and the timeline says %+v", m.ended[0], steps[0].By)
	}
	if m.noted && m.ended[0] == "the reaper" && m.run.State.Working() {
		heard := value[time.Time](t, m.world, `SELECT heard_at FROM run_pulse WHERE run_id = $1`, run.ID)
		if silent := steps[0].At.Sub(heard); silent < m.limit {
			t.Errorf("a worker was told to go on, and %s later the run ended for its silence", silent)
		}
	}
	return m.ended[0]
}

// Catches pulses of ended runs that stay for ever, and an open run whose pulse is forgotten.
func TestForgetPulses(t *testing.T) {
	t.Parallel()
	w := open(t)
	var want []string
	for kind, states := range openStates {
		for range 3 {
			run := w.in(t, states[0], w.creation(kind))
			w.heardAgo(t, run, 1, 0)
			want = append(want, fmt.Sprint(kind, " ", run.ID))
			w.heardAgo(t, w.in(t, lifecycle.Failed, w.creation(kind)), 1, 0)
		}
	}
	var forgotten []int
	for range 4 {
		n, err := w.ForgetPulses(t.Context(), 4)
		must(t, err)
		forgotten = append(forgotten, n)
	}
	if diff := cmp.Diff([]int{4, 2, 0, 0}, forgotten); diff != "" {
		t.Errorf("forgotten (-want +got):\n%s", diff)
	}
	var got []string
	must(t, w.sql.SelectContext(t.Context(), &got, `SELECT kind || ' ' || run_id FROM run_pulse`))
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}
