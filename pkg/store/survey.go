package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/lib/pq"
)

// Survey is what an operator, who sees every tenant, asks of the runs of one kind. Zero fields do not narrow.
type Survey struct {
	Kind           lifecycle.Kind
	States         []lifecycle.State
	OrganizationID int64
	ProjectID      int64
	FigmaFileKey   string
	Before         string // an id: only runs made before that one
}

// Survey lists at most limit runs, deleted or not, newest first: ids are UUIDv7, so their order is that of creation.
func (s *Store) Survey(ctx context.Context, f Survey, limit int) ([]lifecycle.Run, error) {
	statuses, phases := codesOf(f.Kind, f.States)
	var rows []row
	err := s.many(ctx, &rows, surveys[f.Kind][onlyOpen(f.States)], pq.Array(statuses), pq.Array(phases), f.OrganizationID, f.ProjectID,
		f.FigmaFileKey, f.Before, limit)
	if err != nil {
		return nil, failed(ctx, "survey runs", err)
	}
	return runs(f.Kind, rows)
}

func onlyOpen(states []lifecycle.State) bool {
	return len(states) > 0 && !slices.ContainsFunc(states, func(s lifecycle.State) bool { return !s.Open() })
}

// codesOf are the digits of the states, side by side. States that the kind does not have stand for nothing; none at all for every one.
func codesOf(kind lifecycle.Kind, states []lifecycle.State) (statuses, phases []string) {
	if len(states) == 0 {
		states = lifecycle.States
	}
	for _, state := range states {
		if c, ok := stateCodes[kind][state]; ok {
			statuses, phases = append(statuses, c.status), append(phases, c.phase)
		}
	}
	return statuses, phases
}

// surveys by kind, and by whether only open runs are asked for: those are few, and have an index.
var surveys = map[lifecycle.Kind]map[bool]string{
	lifecycle.WF2Des:  {false: surveyOf(lifecycle.WF2Des, `coalesce(phase::text, '')`, ``), true: surveyOf(lifecycle.WF2Des, `phase::text`, ` AND status = '0'`)},
	lifecycle.Code2WF: {false: surveyOf(lifecycle.Code2WF, `''::text`, ``), true: surveyOf(lifecycle.Code2WF, `''::text`, ` AND status = '0'`)},
}

func surveyOf(kind lifecycle.Kind, phase, also string) string {
	return fmt.Sprintf(`SELECT %s FROM %s
WHERE (status::text, %s) IN (SELECT * FROM unnest($1::text[], $2::text[])) AND ($3 = 0 OR organization_id = $3) AND ($4 = 0 OR project_id = $4)
	AND ($5 = '' OR figma_file_key = $5) AND id < coalesce(nullif($6, ''), 'z')%s
ORDER BY id DESC LIMIT $7`, columns[kind], kind, phase, also)
}

// Idle is an open run that nobody has been heard about for a while, with what is known of why.
type Idle struct {
	Run  lifecycle.Run
	For  time.Duration    // since its last change or, where pulses are kept, its worker's last progress; by PostgreSQL's clock
	Last *lifecycle.Event // the newest line of its timeline
	Told []Entry          // what of it is still in the outbox
}

// Idle lists at most limit open runs of all tenants and both kinds that have not changed, and whose workers have been silent, for at
// least as long as given: the longest unchanged first.
func (s *Store) Idle(ctx context.Context, atLeast time.Duration, limit int) ([]Idle, error) {
	var all []Idle
	for _, kind := range lifecycle.Kinds {
		idle, err := s.idleOf(ctx, kind, atLeast, limit)
		if err != nil {
			return nil, err
		}
		all = append(all, idle...)
	}
	slices.SortStableFunc(all, func(a, b Idle) int { return a.Run.UpdatedAt.Compare(b.Run.UpdatedAt) })
	all = all[:min(len(all), limit)]
	return all, s.addWhy(ctx, all)
}

func (s *Store) idleOf(ctx context.Context, kind lifecycle.Kind, atLeast time.Duration, limit int) ([]Idle, error) {
	var rows []struct {
		row
		Seconds float64 `db:"seconds"`
	}
	err := s.many(ctx, &rows, `SELECT `+columns[kind]+`, extract(epoch FROM now() - greatest(updated_at, heard_at))::float8 AS seconds
FROM `+string(kind)+` run LEFT JOIN LATERAL ( -- looked up run by run, whatever the size of the table was when this was planned
	SELECT heard_at FROM run_pulse WHERE kind = '`+string(kind)+`' AND run_id = run.id AND attempt = run.attempt LIMIT 1) pulse ON true
WHERE status = '0' AND updated_at <= now() - $1 * interval '1 microsecond' AND (heard_at IS NULL OR heard_at <= now() - $1 * interval '1 microsecond')
ORDER BY updated_at LIMIT $2`, atLeast.Microseconds(), limit)
	if err != nil {
		return nil, failed(ctx, "list idle runs", err)
	}
	idle := make([]Idle, len(rows))
	for i, r := range rows {
		if idle[i].Run, err = r.run(kind); err != nil {
			return nil, err
		}
		idle[i].For = time.Duration(r.Seconds * float64(time.Second))
	}
	return idle, nil
}

// addWhy adds the last line and the outbox to each run.
func (s *Store) addWhy(ctx context.Context, all []Idle) error {
	if len(all) == 0 {
		return nil
	}
	place, ids := map[string]int{}, make([]string, len(all))
	for i, idle := range all {
		place[idle.Run.ID], ids[i] = i, idle.Run.ID
	}
	var lines []line
	if err := s.many(ctx, &lines, selectLastLines, pq.Array(lifecycle.Kinds), pq.Array(ids)); err != nil {
		return failed(ctx, "read last lines", err)
	}
	for _, l := range lines {
		event, err := l.event()
		if err != nil {
			return err
		}
		all[place[l.RunID]].Last = &event
	}
	entries, err := s.Entries(ctx, EntryFilter{RunIDs: ids}, 100*len(ids))
	for _, e := range entries {
		i := place[e.Run.ID]
		all[i].Told = append(all[i].Told, e)
	}
	return err
}

const selectLastLines = `SELECT ` + lineColumns + `
FROM unnest($1::text[]) AS asked (kind), unnest($2::text[]) AS wanted (id), LATERAL (
	SELECT * FROM run_event WHERE run_event.kind = asked.kind AND run_event.run_id = wanted.id ORDER BY seq DESC LIMIT 1
) AS run_event`
