package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"uuid"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"github.com/google/go-cmp/cmp"
)

// result is what a caller was told of her creation or command.
type result struct {
	run     lifecycle.Run
	outcome lifecycle.Outcome
	err     error
}

// word is the result in short.
func (r result) word() string {
	open, inTheWay := errors.AsType[*lifecycle.OpenRunError](r.err)
	refused, isRefused := errors.AsType[*lifecycle.RefusedError](r.err)
	switch {
	case inTheWay:
		return "in the way: " + open.Existing.ID
	case isRefused:
		return "refused, it is " + string(refused.Run.State)
	case r.err != nil:
		return turnedDown(r.err)
	}
	return string(r.outcome)
}

// call is what a caller asks of a store.
type call func(context.Context, *store.Store) result

func creating(c store.Creation) call {
	return func(ctx context.Context, s *store.Store) result {
		run, err := s.Create(ctx, c)
		return result{run, lifecycle.Applied, err}
	}
}

func applying(cmd lifecycle.Command) call {
	return func(ctx context.Context, s *store.Store) result {
		got, err := s.Apply(ctx, cmd)
		return result{got.Run, got.Outcome, err}
	}
}

// patient is a store whose callers wait for as long as it takes a test to gather a crowd.
func patient(t *testing.T, url string) *store.Store {
	t.Helper()
	return openStore(t, url, store.Options{StatementTimeout: 20 * time.Second})
}

// closed is a way of s that four callers keep closed, because they wait for a lock that the test holds. Whoever comes now waits.
type closed struct {
	s       *store.Store
	kind    lifecycle.Kind
	callers *sync.WaitGroup
}

// close sends calls that will wait for a lock, each when the last one is in flight.
func (w *world) close(t *testing.T, s *store.Store, kind lifecycle.Kind, calls []call) closed {
	t.Helper()
	way := closed{s, kind, new(sync.WaitGroup)}
	way.until(t, 0, 0)
	for i, c := range calls {
		way.callers.Go(func() { c(context.WithoutCancel(t.Context()), s) })
		way.until(t, 0, i+1)
	}
	return way
}

// until waits for a certain traffic.
func (way closed) until(t *testing.T, waiting, flights int) {
	t.Helper()
	until(t, fmt.Sprintf("%d wait and %d are in flight", waiting, flights), func() bool {
		w, f := way.s.Traffic(way.kind)
		return w == waiting && f == flights
	})
}

// closeToCreations closes the way of creations until release is called.
func (w *world) closeToCreations(t *testing.T, s *store.Store, kind lifecycle.Kind) closed {
	t.Helper()
	calls := make([]call, 4)
	for i := range calls {
		c := w.creation(kind)
		c.Run.ProjectID = platform.OtherProjectID
		if kind == lifecycle.Code2WF {
			c.Run.PageImportID = platform.OtherProjectPageImportID
		}
		calls[i] = creating(c)
	}
	return w.close(t, s, kind, calls)
}

// holdProject makes creations in the other project wait.
func (w *world) holdProject(t *testing.T) (release func()) {
	t.Helper()
	return w.hold(t, `SELECT FROM project WHERE id = $1 FOR UPDATE`, platform.OtherProjectID)
}

// closeToCommands closes the way of commands until release is called.
func (w *world) closeToCommands(t *testing.T, s *store.Store, kind lifecycle.Kind) (way closed, release func()) {
	t.Helper()
	calls := make([]call, 4)
	for i := range calls {
		calls[i] = applying(command(lifecycle.Fail, w.create(t, w.creation(kind))))
	}
	release = w.hold(t, `SELECT FROM `+string(kind)+` FOR UPDATE`)
	return w.close(t, s, kind, calls), release
}

// gather makes calls wait for the way to open, in their order. wait waits for all who are on the way, and gives what these were told.
func (way closed) gather(t *testing.T, calls []call) (wait func() []result) {
	t.Helper()
	told := make([]result, len(calls))
	for i, c := range calls {
		way.callers.Go(func() { told[i] = c(context.WithoutCancel(t.Context()), way.s) })
		way.until(t, i+1, 4)
	}
	return func() []result { way.callers.Wait(); return told }
}

// createTogether stores creations in one batch.
func (w *world) createTogether(t *testing.T, s *store.Store, kind lifecycle.Kind, calls []call) []result {
	t.Helper()
	release := w.holdProject(t)
	wait := w.closeToCreations(t, s, kind).gather(t, calls)
	release()
	return wait()
}

// member is a creation or a command in a crowd, and the word that its caller should be told.
type member struct {
	about string
	call  call
	want  string
}

func calls(members []member) []call {
	all := make([]call, len(members))
	for i, m := range members {
		all[i] = m.call
	}
	return all
}

func mustBeTold(t *testing.T, members []member, told []result) {
	t.Helper()
	for i, m := range members {
		if got := told[i].word(); got != m.want {
			t.Errorf("%s: told %q (%v), want %q", m.about, got, told[i].err, m.want)
		}
	}
}

// commits is how many transactions have written the lines of a timeline that a condition selects, and how many lines there are.
func (w *world) commits(t *testing.T, where string, args ...any) (commits, lines int) {
	t.Helper()
	return value[int](t, w, `SELECT count(DISTINCT xmin::text) FROM run_event WHERE `+where, args...),
		value[int](t, w, `SELECT count(*) FROM run_event WHERE `+where, args...)
}

// laws are what must hold of all that is stored; each query counts what breaks it.
var laws = map[string]string{
	"a run has one creation, its maker's, of its first version": `SELECT count(*) FROM run WHERE NOT EXISTS (SELECT FROM run_event e
		WHERE (e.kind, e.run_id, e.seq) = (run.kind, run.id, 1) AND (what, outcome, actor, version) = ('created', 'applied', created_by, created_at))`,
	"a line tells of a run": `SELECT count(*) FROM run_event e WHERE NOT EXISTS (SELECT FROM run WHERE (run.kind, run.id) = (e.kind, e.run_id))`,
	"a node has one open run": `SELECT count(*) FROM (SELECT FROM wf2des WHERE status = '0'
		GROUP BY project_id, figma_file_key, wf_node_id, edge HAVING count(*) > 1) twice`,
	"a timeline has no gap": `SELECT count(*) FROM (SELECT seq, row_number() OVER (PARTITION BY kind, run_id ORDER BY seq) AS n FROM run_event) line
		WHERE seq <> n`,
	"a step starts where the last one ended": `SELECT count(*) FROM (SELECT from_state,
		lag(to_state) OVER (PARTITION BY kind, run_id ORDER BY seq) AS was FROM run_event) line WHERE from_state IS DISTINCT FROM was`,
	"the version rises with each step": `SELECT count(*) FROM (SELECT version, lag(version) OVER (PARTITION BY kind, run_id ORDER BY seq) AS was
		FROM run_event WHERE outcome = 'applied') line WHERE version <= was`,
	"a late word leaves the version": `SELECT count(*) FROM (SELECT outcome, version, lag(version) OVER (PARTITION BY kind, run_id ORDER BY seq) AS was
		FROM run_event) line WHERE outcome <> 'applied' AND version <> was`,
	"the row is as its last line says": `SELECT count(*) FROM run JOIN (SELECT DISTINCT ON (kind, run_id) * FROM run_event
		ORDER BY kind, run_id, seq DESC) e ON (e.kind, e.run_id) = (run.kind, run.id) WHERE updated_at <> version OR status <>
		CASE to_state WHEN 'completed' THEN '1' WHEN 'failed' THEN '2' WHEN 'rejected' THEN '3' WHEN 'cancelled' THEN '4' ELSE '0' END`,
	"a run ends once": `SELECT count(*) FROM (SELECT FROM run_event WHERE outcome = 'applied' AND what IN
		('completed', 'failed', 'rejected', 'cancelled') GROUP BY kind, run_id HAVING count(*) > 1) twice`,
	"a run has one first job": `SELECT count(*) FROM run WHERE (SELECT count(*) FROM outbox o WHERE (o.kind, o.run_id) = (run.kind, run.id)
		AND stage IN ('parse', 'generate')) <> 1`,
	"each step is announced once": `SELECT count(*) FROM run_event e WHERE outcome = 'applied' AND (SELECT count(*) FROM outbox o
		WHERE (o.kind, o.run_id, o.seq) = (e.kind, e.run_id, e.seq) AND destination = 'events') <> 1`,
}

// mustHold fails unless all that is stored keeps the laws.
func (w *world) mustHold(t *testing.T) {
	t.Helper()
	const runs = `WITH run AS (SELECT 'wf2des' AS kind, id, status::text, created_at, created_by, updated_at FROM wf2des
		UNION ALL SELECT 'code2wf', id, status::text, created_at, created_by, updated_at FROM code2wf) `
	for law, broken := range laws {
		if n := value[int](t, w, runs+broken); n > 0 {
			t.Errorf("%s: %d do not", law, n)
		}
	}
}

// Catches a store that gives each caller a commit of her own however many there are, an answer that goes to another caller, and whatever
// breaks when many rows are one statement.
func TestManyCallersShareCommits(t *testing.T) {
	t.Parallel()
	w := openTogether(t)
	const callers, each = 64, 4
	for _, kind := range lifecycle.Kinds {
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range each {
					c := w.creation(kind)
					run, err := w.Create(t.Context(), c)
					if err != nil || run.ID != c.Run.ID {
						t.Errorf("create: told of %s, %v, want %s", run.ID, err, c.Run.ID)
						return
					}
					got, err := w.Apply(t.Context(), command(lifecycle.Fail, run))
					if err != nil || got.Run.ID != c.Run.ID || got.Outcome != lifecycle.Applied || !got.Run.UpdatedAt.After(run.UpdatedAt) {
						t.Errorf("fail: told of %s, %s, %v, want %s", got.Run.ID, got.Outcome, err, c.Run.ID)
					}
				}
			})
		}
		all.Wait()
		for seq, about := range []string{1: "creations", 2: "steps"} {
			if seq == 0 {
				continue
			}
			if commits, lines := w.commits(t, `kind = $1 AND seq = $2`, kind, seq); lines != callers*each || commits*4 > lines {
				t.Errorf("%d %s of %s took %d commits", lines, about, kind, commits)
			}
		}
	}
	w.mustHold(t)
}

// turnedDownInACrowd are creations that can be stored, and between them such as can not, for reasons that the statement itself finds.
func (w *world) turnedDownInACrowd(t *testing.T, kind lifecycle.Kind) []member {
	good := func(change func(*store.Creation)) call {
		c := w.creation(kind)
		change(&c)
		return creating(c)
	}
	same := func(*store.Creation) {}
	members := []member{
		{"the first", good(same), "applied"},
		{"a stranger", good(func(c *store.Creation) { c.By.Name = "a stranger" }), lifecycle.ErrUnknownUser.Error()},
		{"another organization's project", good(func(c *store.Creation) { c.Run.ProjectID = platform.OtherOrganizationProjectID }), lifecycle.ErrNotFound.Error()},
		{"one in between", good(same), "applied"},
	}
	if kind == lifecycle.Code2WF {
		return append(members,
			member{"an unfinished page import", good(func(c *store.Creation) { c.Run.PageImportID = platform.UnfinishedPageImportID }), "/pageImportId"},
			member{"the last", good(same), "applied"})
	}
	standing, twin := w.create(t, w.creation(kind)), w.creation(kind)
	of := func(run lifecycle.Run) func(*store.Creation) {
		return func(c *store.Creation) { c.Run.WFNodeID = run.WFNodeID }
	}
	return append(members,
		member{"a node with an open run", good(of(standing)), "in the way: " + standing.ID},
		member{"the first of a node's two", creating(twin), "applied"},
		member{"the second of a node's two", good(of(twin.Run)), "in the way: " + twin.Run.ID},
		member{"the last", good(same), "applied"})
}

// brokenCreations are such as PostgreSQL, or this package, refuses with an error.
func (w *world) brokenCreations(t *testing.T, kind lifecycle.Kind) (members []member) {
	for about, screen := range map[string]string{
		"an over-long screen id": strings.Repeat("s", 256), "a NUL": "a\x00b", "broken UTF-8": "\xff",
	} {
		c := w.creation(kind)
		c.Run.ScreenID = screen
		members = append(members, member{about, creating(c), "something else"}, member{"after " + about, creating(w.creation(kind)), "applied"})
	}
	again := w.creation(kind)
	w.in(t, lifecycle.Failed, again)
	return append(members, member{"one that is stored already", creating(again), "applied"})
}

// Catches a batch whose members get each other's answers, one that falls apart because a member is turned down, and a bad creation that
// fails its neighbours or leaves something behind.
func TestCreationsInOneBatch(t *testing.T) {
	t.Parallel()
	for _, kind := range lifecycle.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := openTogether(t)
			s := patient(t, w.url)
			members := w.turnedDownInACrowd(t, kind)
			ids := w.mustAnswer(t, members, w.createTogether(t, s, kind, calls(members)))
			if commits, lines := w.commits(t, `run_id = ANY(string_to_array($1, ' '))`, strings.Join(ids, " ")); commits != 1 || lines != len(ids) {
				t.Errorf("%d creations took %d commits", lines, commits)
			}
			members = append(w.turnedDownInACrowd(t, kind), w.brokenCreations(t, kind)...)
			w.mustAnswer(t, members, w.createTogether(t, s, kind, calls(members)))
			w.mustHold(t)
		})
	}
}

// mustAnswer fails unless each member was told what it should be, and stored and told are the same. It gives the ids of those that were
// created or changed.
func (w *world) mustAnswer(t *testing.T, members []member, told []result) (ids []string) {
	t.Helper()
	mustBeTold(t, members, told)
	for i, r := range told {
		if r.err != nil {
			continue
		}
		if diff := cmp.Diff(r.run, w.read(t, r.run.Ref)); diff != "" {
			t.Errorf("%s (-told +stored):\n%s", members[i].about, diff)
		}
		if r.outcome != lifecycle.Unchanged {
			ids = append(ids, r.run.ID)
		}
	}
	return ids
}

// commandsInACrowd are commands about different runs with every sort of answer.
func (w *world) commandsInACrowd(t *testing.T, kind lifecycle.Kind) []member {
	in := func(state lifecycle.State) lifecycle.Run { return w.in(t, state, w.creation(kind)) }
	first := w.create(t, w.creation(kind))
	placed := w.apply(t, command(lifecycle.Place, in(lifecycle.Completed))).Run
	foreign, newer := command(lifecycle.Place, in(lifecycle.Completed)), command(lifecycle.Fail, w.create(t, w.creation(kind)))
	foreign.Tenant = &lifecycle.Tenant{OrganizationID: platform.OtherOrganizationID, ProjectID: platform.OtherOrganizationProjectID}
	newer.Attempt++
	nowhere := command(lifecycle.Fail, lifecycle.Run{Ref: lifecycle.Ref{Kind: kind, ID: uuid.NewV7().String()}, Attempt: 1})
	return []member{
		{"the first", applying(command(lifecycle.Fail, first)), "applied"},
		{"another tenant's", applying(foreign), lifecycle.ErrNotFound.Error()},
		{"nobody's", applying(nowhere), lifecycle.ErrNotFound.Error()},
		{"a late word", applying(command(lifecycle.Complete, in(lifecycle.Failed))), "already_terminal"},
		{"a person too early", applying(command(lifecycle.Place, w.create(t, w.creation(kind)))), "refused, it is " + string(first.State)},
		{"an attempt that never was", applying(newer), "refused, it is " + string(first.State)},
		{"the same decision again", applying(command(lifecycle.Place, placed)), "unchanged"},
		{"a person", applying(command(lifecycle.Delete, in(lifecycle.Completed))), "applied"},
		{"the last", applying(command(lifecycle.Fail, w.create(t, w.creation(kind)))), "applied"},
	}
}

// unreadable makes a row that no State stands for.
var unreadable = map[lifecycle.Kind][2]string{
	lifecycle.WF2Des:  {`ALTER TABLE wf2des DROP CONSTRAINT wf2des_phase_iff_open`, `UPDATE wf2des SET phase = NULL WHERE id = $1`},
	lifecycle.Code2WF: {`ALTER TABLE code2wf DROP CONSTRAINT code2wf_processing_completed_or_failed`, `UPDATE code2wf SET status = '3' WHERE id = $1`},
}

// brokenCommands are such as PostgreSQL, or this package, refuses with an error, and a good one after each.
func (w *world) brokenCommands(t *testing.T, kind lifecycle.Kind) (members []member) {
	ready := func() lifecycle.Run {
		if kind == lifecycle.WF2Des {
			return w.in(t, lifecycle.Assembling, w.creation(kind))
		}
		return w.create(t, w.creation(kind))
	}
	for about, result := range map[string]lifecycle.Result{
		"an over-long key":              {Key: new(strings.Repeat("k", 501))},
		"a NUL":                         {Key: new("a\x00b")},
		"broken UTF-8":                  {Key: new("\xff")},
		"a number that a CHECK refuses": {Key: new("k"), FlagCount: new(-1)},
	} {
		cmd := command(lifecycle.Complete, ready())
		cmd.Result = result
		members = append(members, member{about, applying(cmd), "something else"},
			member{"after " + about, applying(command(lifecycle.Complete, ready())), "applied"})
	}
	run := ready()
	w.exec(t, unreadable[kind][0])
	w.exec(t, unreadable[kind][1], run.ID)
	return append(members, member{"an unreadable row", applying(command(lifecycle.Fail, run)), "something else"},
		member{"after it", applying(command(lifecycle.Fail, ready())), "applied"})
}

// The same for commands.
func TestCommandsInOneBatch(t *testing.T) {
	t.Parallel()
	for _, kind := range lifecycle.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := openTogether(t)
			s := patient(t, w.url)
			members := w.commandsInACrowd(t, kind)
			before := value[string](t, w, `SELECT max(xmin::text::bigint)::text FROM run_event`)
			ids := w.mustAnswer(t, members, w.applyTogether(t, s, kind, calls(members)))
			commits, lines := w.commits(t, `run_id = ANY(string_to_array($1, ' ')) AND xmin::text::bigint > $2::bigint`, strings.Join(ids, " "), before)
			if commits != 1 || lines != len(ids) {
				t.Errorf("%d steps took %d commits", lines, commits)
			}
			w.mustHold(t)
			members = append(w.commandsInACrowd(t, kind), w.brokenCommands(t, kind)...)
			w.mustAnswer(t, members, w.applyTogether(t, s, kind, calls(members)))
		})
	}
}

// applyTogether stores commands in one batch.
func (w *world) applyTogether(t *testing.T, s *store.Store, kind lifecycle.Kind, calls []call) []result {
	t.Helper()
	way, release := w.closeToCommands(t, s, kind)
	wait := way.gather(t, calls)
	release()
	return wait()
}

// Catches a batch that decides two commands about one run on the same row, and a later one that overtakes an earlier one.
func TestCommandsAboutOneRunKeepTheirOrder(t *testing.T) {
	t.Parallel()
	w := openTogether(t)
	c := w.creation(lifecycle.WF2Des)
	run, other := w.in(t, lifecycle.AwaitingConfirm, c), w.create(t, w.creation(lifecycle.WF2Des))
	members := []member{
		{"confirm", applying(command(lifecycle.Confirm, run)), "applied"},
		{"another run", applying(command(lifecycle.Fail, other)), "applied"},
		{"confirm again", applying(command(lifecycle.Confirm, run)), "unchanged"},
		{"cancel", applying(command(lifecycle.Cancel, run)), "applied"},
		{"reject", applying(command(lifecycle.Reject, run)), "refused, it is cancelled"},
		{"the worker", applying(command(lifecycle.Complete, run)), "already_terminal"},
	}
	mustBeTold(t, members, w.applyTogether(t, patient(t, w.url), lifecycle.WF2Des, calls(members)))
	w.mustReplay(t, c.Run)
}

// The line breaks around the COMMIT of a batch. Catches a member that is told more than is known or less, and one that does not converge.
func TestCommitOfABatchCut(t *testing.T) {
	t.Parallel()
	w := openTogether(t)
	l := lineTo(t, w.url)
	s := patient(t, l.url)
	for _, arrives := range []bool{true, false} {
		members := w.commandsInACrowd(t, lifecycle.WF2Des)
		again := slices.Clone(members)
		for i, m := range members {
			if m.want == "applied" || m.want == "already_terminal" {
				members[i].want = lifecycle.ErrOutcomeUnknown.Error()
			}
			if arrives && m.want == "applied" {
				again[i].want = "duplicate"
			}
			if arrives && m.about == "a person" {
				again[i].want = "unchanged"
			}
		}
		way, release := w.closeToCommands(t, s, lifecycle.WF2Des)
		wait := way.gather(t, calls(members))
		l.follow(cut{word: "COMMIT", arrives: arrives})
		release()
		mustBeTold(t, members, wait())
		l.follow(cut{})
		for _, m := range again {
			if got := m.call(t.Context(), s).word(); got != m.want {
				t.Errorf("%s again, COMMIT arrived %t: told %q, want %q", m.about, arrives, got, m.want)
			}
		}
		w.mustHold(t)
	}
}

// The line breaks around the statement that stores a batch, once or for good. Catches a run that is stored twice or lost.
func TestInsertOfABatchCut(t *testing.T) {
	t.Parallel()
	w := openTogether(t)
	l := lineTo(t, w.url)
	s := patient(t, l.url)
	for _, kind := range lifecycle.Kinds {
		for _, arrives := range []bool{true, false} {
			for times, want := range map[int]string{0: lifecycle.ErrOutcomeUnknown.Error(), 1: "applied"} {
				about := fmt.Sprintf("%s, arrives %t, cut %d times", kind, arrives, times)
				members := make([]member, 6)
				var last store.Creation
				for i := range members {
					last = w.creation(kind)
					members[i] = member{about, creating(last), want}
				}
				release := w.holdProject(t)
				wait := w.closeToCreations(t, s, kind).gather(t, calls(members))
				l.follow(cut{word: last.Run.ID, arrives: arrives, times: times})
				release()
				mustBeTold(t, members, wait())
				l.follow(cut{})
				for i := range members {
					members[i].want = "applied"
				}
				w.mustAnswer(t, members, w.createTogether(t, s, kind, calls(members)))
			}
		}
	}
	w.mustHold(t)
}

// Two intakes store the same nodes in batches that name them in opposite orders. Catches batches that wait for each other until PostgreSQL
// breaks one of them up.
func TestBatchesDoNotDeadlock(t *testing.T) {
	t.Parallel()
	w := openTogether(t)
	stores := []*store.Store{patient(t, w.url), patient(t, w.url)}
	for range 4 {
		var sides [2][]call
		for range 60 {
			c := w.creation(lifecycle.WF2Des)
			for i := range sides {
				c.Run.ID = uuid.NewV7().String()
				sides[i] = append(sides[i], creating(c))
			}
		}
		slices.Reverse(sides[1])
		release := w.holdProject(t)
		var waits []func() []result
		for i, s := range stores {
			waits = append(waits, w.closeToCreations(t, s, lifecycle.WF2Des).gather(t, sides[i]))
		}
		release()
		counts := map[string]int{}
		for _, wait := range waits {
			for _, r := range wait() {
				word, _, _ := strings.Cut(r.word(), ":")
				counts[word]++
			}
		}
		if want := map[string]int{"applied": 60, "in the way": 60}; !maps.Equal(counts, want) {
			t.Errorf("told %v, want %v", counts, want)
		}
	}
	for _, s := range stores {
		s.Close() // a session that ends hands in its statistics
	}
	until(t, "the stores' sessions have ended", func() bool {
		return value[int](t, w, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%json_to_recordset%'
			AND pid <> pg_backend_pid()`) == 0
	})
	if n := value[int](t, w, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`); n > 0 {
		t.Errorf("%d deadlocks", n)
	}
	w.mustHold(t)
}
