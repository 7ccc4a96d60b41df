package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"github.com/google/go-cmp/cmp"
)

// lanes are all lanes of a store's own process. They carry when a test says so.
type lanes struct {
	jobs              []store.Fresh[lifecycle.Job]
	events, decisions store.Fresh[lifecycle.Announcement]
	designs           store.Fresh[lifecycle.Landing]
}

func lanesOf(s *store.Store) lanes {
	l := lanes{events: s.FreshEvents(lease), decisions: s.FreshDecisions(lease), designs: s.FreshDesigns(lease)}
	for _, work := range []string{"wf2des", "des2wf", "code2wf"} {
		l.jobs = append(l.jobs, s.FreshJobs(work, lease))
	}
	return l
}

// mail is what somebody holds under a lease.
type mail struct {
	Jobs              []store.Parcel[lifecycle.Job]
	Events, Decisions []store.Parcel[lifecycle.Announcement]
	Designs           []store.Parcel[lifecycle.Landing]
}

// handed takes what was handed over to the lanes.
func (l lanes) handed() (m mail) {
	for _, jobs := range l.jobs {
		m.Jobs = append(m.Jobs, taken(jobs)...)
	}
	m.Events, m.Decisions, m.Designs = taken(l.events), taken(l.decisions), taken(l.designs)
	return m
}

func taken[T any](f store.Fresh[T]) (all []store.Parcel[T]) {
	for {
		select {
		case p := <-f.Parcels:
			all = append(all, p)
		default:
			return all
		}
	}
}

// waiting names the lanes that were told to claim since it was asked last.
func (l lanes) waiting() string {
	var told []string
	tokens := map[string][]<-chan struct{}{"events": {l.events.Waiting}, "decisions": {l.decisions.Waiting}, "designs": {l.designs.Waiting}}
	for _, jobs := range l.jobs {
		tokens["jobs"] = append(tokens["jobs"], jobs.Waiting)
	}
	for _, name := range []string{"jobs", "events", "decisions", "designs"} {
		for _, token := range tokens[name] {
			select {
			case <-token:
				told = append(told, name)
			default:
			}
		}
	}
	return strings.Join(told, " ")
}

// claimed is what another process is given now.
func (w *world) claimed(t *testing.T) mail {
	t.Helper()
	m := mail{Jobs: w.claimJobs(t, 1000), Events: w.claimEvents(t, 1000)}
	var err error
	m.Decisions, err = w.ClaimDecisions(t.Context(), 1000, lease)
	must(t, err)
	m.Designs, err = w.ClaimDesigns(t.Context(), 1000, lease)
	must(t, err)
	return m
}

// kinds names the destinations of the parcels, once for each.
func (m mail) kinds() string {
	all := slices.Concat(slices.Repeat([]string{"jobs"}, len(m.Jobs)), slices.Repeat([]string{"events"}, len(m.Events)),
		slices.Repeat([]string{"decisions"}, len(m.Decisions)), slices.Repeat([]string{"designs"}, len(m.Designs)))
	return strings.Join(all, " ")
}

func (m mail) ids() []int64 {
	ids := slices.Concat(idsOf(m.Jobs), idsOf(m.Events), idsOf(m.Decisions), idsOf(m.Designs))
	slices.Sort(ids)
	return ids
}

func idsOf[T any](parcels []store.Parcel[T]) (ids []int64) {
	for _, p := range parcels {
		ids = append(ids, p.ID)
	}
	return ids
}

// again is the mail as a claim gives it out when the leases of the lanes have run out.
func (m mail) again() mail {
	return mail{againOf(m.Jobs), againOf(m.Events), againOf(m.Decisions), againOf(m.Designs)}
}

func againOf[T any](parcels []store.Parcel[T]) []store.Parcel[T] {
	parcels = slices.SortedFunc(slices.Values(parcels), func(a, b store.Parcel[T]) int { return int(a.ID - b.ID) })
	for i := range parcels {
		parcels[i].Tries++
	}
	return parcels
}

// whenever is for comparing mail of different leases.
var whenever = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Until" }, cmp.Ignore())

// mustBeLeased fails unless this is the mail's lease of that number, and began between two moments.
func (m mail) mustBeLeased(t *testing.T, number int, from, to time.Time) {
	t.Helper()
	leased := func(tries int, until time.Time) {
		if tries != number || until.Before(from.Add(lease)) || until.After(to.Add(lease)) {
			t.Errorf("leased with the tries %d, until %v; want %d, and a minute after %v to %v", tries, until, number, from, to)
		}
	}
	for _, p := range m.Jobs {
		leased(p.Tries, p.Until)
	}
	for _, p := range slices.Concat(m.Events, m.Decisions) {
		leased(p.Tries, p.Until)
	}
	for _, p := range m.Designs {
		leased(p.Tries, p.Until)
	}
}

// telling is a step, the lanes that are handed what it tells, and those that are told to claim.
type telling struct {
	verb            lifecycle.Verb
	handed, waiting string
}

// tellings are ways through the life of a run; each begins with a creation of an edge, "" for code2wf.
var tellings = map[string]struct {
	edge       lifecycle.Edge
	auto, once bool
	steps      []telling
}{
	"wf2des": {lifecycle.EdgeWF2Des, false, false, []telling{
		{lifecycle.Create, "jobs events", ""}, {lifecycle.Parsed, "events", ""}, {lifecycle.Confirm, "events decisions", "jobs"},
		{lifecycle.Complete, "events designs", ""}, {lifecycle.Place, "events", ""}, {lifecycle.Rate, "events", ""}, {lifecycle.Delete, "events", ""}}},
	"des2wf": {lifecycle.EdgeDes2WF, false, false, []telling{
		{lifecycle.Create, "jobs events", ""}, {lifecycle.Parsed, "events", ""}, {lifecycle.Confirm, "events decisions", "jobs"},
		{lifecycle.Complete, "events", ""}}},
	"rejected": {lifecycle.EdgeWF2Des, false, true, []telling{
		{lifecycle.Create, "jobs events", ""}, {lifecycle.Parsed, "events", ""}, {lifecycle.Reject, "events decisions", ""}}},
	"nobody asked": {lifecycle.EdgeWF2Des, true, false, []telling{
		{lifecycle.Create, "jobs events", ""}, {lifecycle.Parsed, "events", ""}, {lifecycle.Complete, "events designs", ""}}},
	"failed":    {lifecycle.EdgeWF2Des, false, true, []telling{{lifecycle.Create, "jobs events", ""}, {lifecycle.Fail, "events", ""}}},
	"cancelled": {lifecycle.EdgeDes2WF, false, true, []telling{{lifecycle.Create, "jobs events", ""}, {lifecycle.Cancel, "events", ""}}},
	"queued anew": {lifecycle.EdgeWF2Des, false, false, []telling{
		{lifecycle.Create, "jobs events", ""}, {lifecycle.Requeue, "events", "jobs"}, {lifecycle.Cancel, "events", ""}}},
	"code2wf": {"", false, false, []telling{
		{lifecycle.Create, "jobs events", ""}, {lifecycle.Complete, "events", ""}, {lifecycle.Place, "events", ""}, {lifecycle.Delete, "events", ""}}},
	"code2wf, failed": {"", false, true, []telling{{lifecycle.Create, "jobs events", ""}, {lifecycle.Fail, "events", ""}, {lifecycle.Delete, "events", ""}}},
}

// tell takes one step of a run, whose creation is c.
func (w *world) tell(t *testing.T, verb lifecycle.Verb, c store.Creation, once bool, run lifecycle.Run) lifecycle.Run {
	t.Helper()
	switch {
	case verb != lifecycle.Create:
		return w.apply(t, command(verb, run)).Run
	case once:
		return w.once(t, c, theKey, false)
	}
	return w.create(t, c)
}

func (w *world) toTell(edge lifecycle.Edge, auto bool) store.Creation {
	if edge == "" {
		return w.creation(lifecycle.Code2WF)
	}
	return w.ofEdge(edge, auto)
}

// Catches a parcel that tells something else than a claim would (the row of before the step, another line, another stage, another run's
// tenant), one that somebody else is given during its lease or nobody after it, one that lacks, one too many, and a lane that is not told
// what waits for it or is told for nothing.
func TestWhatIsHandedOverIsWhatAClaimWouldGive(t *testing.T) {
	t.Parallel()
	for name, story := range tellings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openTelling(t, bothEffects)
			l := lanesOf(w.Store)
			c := w.toTell(story.edge, story.auto)
			var run lifecycle.Run
			for _, step := range story.steps {
				from := time.Now()
				run = w.tell(t, step.verb, c, story.once, run)
				handed, waiting, now := l.handed(), l.waiting(), w.claimed(t)
				if handed.kinds() != step.handed || waiting != step.waiting || now.kinds() != step.waiting {
					t.Fatalf("%s: handed over %q, told to claim %q, claimed %q; want %q, %q", step.verb, handed.kinds(), waiting, now.kinds(), step.handed, step.waiting)
				}
				handed.mustBeLeased(t, 1, from, time.Now())
				must(t, w.Sent(t.Context(), now.ids()))
				w.endLeases(t)
				from = time.Now()
				later := w.claimed(t)
				later.mustBeLeased(t, 2, from, time.Now())
				if diff := cmp.Diff(handed.again(), later, whenever); diff != "" {
					t.Errorf("%s (-handed over +claimed after the lease):\n%s", step.verb, diff)
				}
				must(t, w.Sent(t.Context(), later.ids()))
			}
		})
	}
}

// Catches a lease that nobody keeps: an entry of a store without the lane for it has to be due at once, as if it had never been claimed.
func TestWithoutALaneEverythingIsDueAtOnce(t *testing.T) {
	t.Parallel()
	for only, open := range map[string]func(*store.Store){
		"none":   func(*store.Store) {},
		"events": func(s *store.Store) { s.FreshEvents(lease) },
	} {
		w := openTelling(t, bothEffects)
		open(w.Store)
		for _, story := range tellings {
			c := w.toTell(story.edge, story.auto)
			var run lifecycle.Run
			for _, step := range story.steps {
				run = w.tell(t, step.verb, c, false, run)
			}
		}
		if n := value[int](t, w, `SELECT count(*) FROM outbox WHERE destination <> $1 AND (tries <> 0 OR due_at > clock_timestamp())`, only); n != 0 {
			t.Errorf("with the lane %s, %d entries of others were born under a lease", only, n)
		}
		if n := value[int](t, w, `SELECT count(*) FROM outbox WHERE seq = 1 AND tries = 1`); (n == len(tellings)) != (only == "events") {
			t.Errorf("with the lane %s, %d first events were born under a lease", only, n)
		}
	}
}

// Catches a run's younger message that is handed over while an older one is on its way, one that nobody is told of, and one that waits
// although what is older goes elsewhere, is another run's or will never be sent.
func TestAnOlderMessageGoesFirst(t *testing.T) {
	t.Parallel()
	w := openTelling(t, bothEffects)
	elsewhere := openStore(t, w.url, store.Options{}) // a process without lanes
	l := lanesOf(w.Store)
	mustTell := func(about string, verb lifecycle.Verb, run lifecycle.Run, handed, waiting string) (lifecycle.Run, mail) {
		t.Helper()
		run = w.apply(t, command(verb, run)).Run
		got := l.handed()
		if told := l.waiting(); got.kinds() != handed || told != waiting {
			t.Errorf("%s: handed over %q, told to claim %q; want %q, %q", about, got.kinds(), told, handed, waiting)
		}
		return run, got
	}
	run := w.create(t, w.creation(lifecycle.WF2Des))
	first := l.handed()
	run, _ = mustTell("the creation is on its way", lifecycle.Parsed, run, "", "events")
	if got := w.claimed(t); got.kinds() != "" {
		t.Errorf("claimed before an older message: %q", got.kinds())
	}
	must(t, w.Sent(t.Context(), idsOf(first.Events)))
	now := w.claimed(t)
	if now.kinds() != "events" || now.Events[0].Tries != 1 {
		t.Errorf("after the older message has arrived: %+v", now)
	}
	must(t, w.Sent(t.Context(), idsOf(now.Events)))

	run, got := mustTell("only the first job is on its way", lifecycle.Confirm, run, "events decisions", "jobs")
	must(t, w.SetAside(t.Context(), got.Events[0].ID, 1, "never"))
	run, got = mustTell("a decision is on its way, and an event set aside", lifecycle.Complete, run, "events designs", "")
	must(t, w.Retry(t.Context(), store.Failure{ID: got.Events[0].ID, Tries: 1, Wait: time.Hour, Cause: "down"}))
	run, _ = mustTell("an older event rests", lifecycle.Place, run, "", "events")
	mustTell("two older events wait", lifecycle.Delete, run, "", "events")

	run, err := elsewhere.Create(t.Context(), w.creation(lifecycle.Code2WF))
	must(t, err)
	mustTell("another process has written the older event", lifecycle.Fail, run, "", "events")
	run = w.create(t, w.creation(lifecycle.Code2WF))
	must(t, w.Skip(t.Context(), l.handed().Events[0].ID, 1, "outdated"))
	mustTell("an operator has let the older event go", lifecycle.Fail, run, "events", "")
}

// Catches a lane that is handed ever more although it stands still, entries that lie under its lease meanwhile, another lane that suffers
// with it, and one that is never trusted again.
func TestALaneThatDoesNotKeepUpIsHandedNothingMore(t *testing.T) {
	t.Parallel()
	w := open(t)
	l := lanesOf(w.Store)
	const most, more = 512, 5
	for i := range most + more {
		w.create(t, w.creation(lifecycle.Code2WF))
		if got := len(taken(l.events)); got != 1 {
			t.Fatalf("%d jobs wait, and the other lane is handed %d events", i, got)
		}
		if told := l.waiting(); (told == "jobs") != (i >= most) {
			t.Fatalf("%d jobs wait: told to claim %q", i, told)
		}
	}
	if due := w.claimJobs(t, 1000); len(due) != more || due[0].Tries != 1 {
		t.Errorf("%d jobs were due at once, want %d", len(due), more)
	}
	if got := len(l.handed().Jobs); got != most {
		t.Errorf("%d jobs were handed over, want %d", got, most)
	}
	w.create(t, w.creation(lifecycle.Code2WF))
	if got, told := l.handed().kinds(), l.waiting(); got != "jobs events" || told != "" {
		t.Errorf("when the lane has caught up: %q, told to claim %q", got, told)
	}
}
