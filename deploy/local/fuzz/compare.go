package fuzz

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/lib/pq"
)

// row is what PostgreSQL holds of a run.
type row struct {
	id, status, phase, screen, by string
	changed, version              time.Time // updated_at, and the version of the last applied line
	deleted                       bool
	lines, last, applied, waiting int
}

// rowsOf reads runs with all that belongs to them. Digits become words here, apart from the store's own map.
func rowsOf(ctx context.Context, db *sql.DB, kind string, ids []string) ([]row, error) {
	phase := `''`
	if kind == "wf2des" {
		phase = `coalesce((ARRAY['parse', 'awaiting_confirm', 'assemble'])[phase::text::int + 1], '')`
	}
	rows, err := db.QueryContext(ctx, `SELECT r.id, (ARRAY['processing', 'completed', 'failed', 'rejected', 'cancelled'])[status::text::int + 1],
	`+phase+`, screen_id, updated_by, updated_at, deleted_at IS NOT NULL, e.version, e.lines, e.last, e.applied,
	(SELECT count(*) FROM outbox o WHERE o.state = 'pending' AND o.destination IN ('jobs', 'events') AND o.run_id = r.id)
FROM `+kind+` r, LATERAL (SELECT count(*) AS lines, coalesce(max(seq), 0) AS last, count(*) FILTER (WHERE outcome = 'applied') AS applied,
	coalesce(max(version) FILTER (WHERE outcome = 'applied'), 'epoch') AS version FROM run_event WHERE kind = $1 AND run_id = r.id) e
WHERE r.id = ANY($2)`, kind, pq.Array(ids))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []row
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.id, &r.status, &r.phase, &r.screen, &r.by, &r.changed, &r.deleted, &r.version, &r.lines, &r.last,
			&r.applied, &r.waiting); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// differs says how a row differs from what the answers told of it; "" if it does not.
func (e *entry) differs(r row) string {
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"status", r.status, e.status}, {"phase", r.phase, e.phase}, {"screen_id", r.screen, e.screen}, {"updated_by", r.by, e.by},
		{"deleted", r.deleted, e.deleted}, {"lines of the timeline", r.lines, e.lines}, {"number of the last line", r.last, e.lines},
		{"applied lines", r.applied, e.applied},
	} {
		if c.got != c.want {
			return fmt.Sprintf("%s %s: %s is %v, the answers told %v", e.kind, e.id, c.what, c.got, c.want)
		}
	}
	switch {
	case !e.stale && !r.changed.Equal(e.changed) || e.stale && !r.changed.After(e.changed):
		return fmt.Sprintf("%s %s: updated_at is %v, the answers told %v (stale %v)", e.kind, e.id, r.changed, e.changed, e.stale)
	case !r.version.Equal(r.changed):
		return fmt.Sprintf("%s %s: updated_at is %v, its last step was at %v", e.kind, e.id, r.changed, r.version)
	case r.waiting > e.applied+e.jobs:
		return fmt.Sprintf("%s %s: %d outbox entries wait for %d steps and %d jobs", e.kind, e.id, r.waiting, e.applied, e.jobs)
	}
	return ""
}

// check compares the runs with PostgreSQL.
func (b *book) check(ctx context.Context, db *sql.DB, ids []string) (differences []string, err error) {
	byKind := map[string][]string{}
	for _, id := range ids {
		byKind[b.runs[id].kind] = append(byKind[b.runs[id].kind], id)
	}
	for kind, ids := range byKind {
		rows, err := rowsOf(ctx, db, kind, ids)
		if err != nil {
			return nil, fmt.Errorf("fuzz: reading rows: %w", err)
		}
		for _, r := range rows {
			if d := b.runs[r.id].differs(r); d != "" {
				differences = append(differences, d)
			}
			ids = slices.DeleteFunc(ids, func(id string) bool { return id == r.id })
		}
		for _, id := range ids {
			differences = append(differences, fmt.Sprintf("%s %s: told as created, and there is no row", kind, id))
		}
	}
	return differences, nil
}

// compareRecent compares every run that was spoken of since the last time, and looks for rows that no answer told of.
func (b *book) compareRecent(ctx context.Context, db *sql.DB) ([]string, error) {
	ids := make([]string, 0, len(b.touched))
	for id := range b.touched {
		ids = append(ids, id)
	}
	differences, err := b.check(ctx, db, ids)
	if err != nil {
		return nil, err
	}
	secret, err := b.secretRows(ctx, db)
	clear(b.touched)
	clear(b.files)
	return append(differences, secret...), err
}

// secretRows finds rows under this worker's file keys that no 201 told of.
func (b *book) secretRows(ctx context.Context, db *sql.DB) (secret []string, err error) {
	var organizations, projects []int64
	for _, t := range b.people.tenants {
		organizations, projects = append(organizations, t.organization), append(projects, t.project)
	}
	keys := make([]string, 0, len(b.files))
	for key := range b.files {
		keys = append(keys, key)
	}
	for _, kind := range []string{"wf2des", "code2wf"} {
		var ids, makers []string
		err := db.QueryRowContext(ctx, `SELECT coalesce(array_agg(id), '{}'), coalesce(array_agg(created_by), '{}') FROM `+kind+`
WHERE organization_id = ANY($1) AND project_id = ANY($2) AND figma_file_key = ANY($3)`,
			pq.Array(organizations), pq.Array(projects), pq.Array(keys)).Scan(pq.Array(&ids), pq.Array(&makers))
		if err != nil {
			return nil, fmt.Errorf("fuzz: looking for rows: %w", err)
		}
		for i, id := range ids {
			if b.runs[id] == nil {
				secret = append(secret, fmt.Sprintf("%s %s: there is a row by %s that no answer told of", kind, id, makers[i]))
			}
		}
	}
	return secret, nil
}

// compareAll compares all runs.
func (b *book) compareAll(ctx context.Context, db *sql.DB) (differences []string, err error) {
	ids := make([]string, 0, len(b.runs))
	for id := range b.runs {
		ids = append(ids, id)
	}
	for part := range slices.Chunk(ids, 1000) {
		some, err := b.check(ctx, db, part)
		if err != nil {
			return nil, err
		}
		differences = append(differences, some...)
	}
	return differences, nil
}
