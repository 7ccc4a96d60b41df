package store_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

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
