package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/lib/pq"
)

// visible is what soft deletion means to every reader on behalf of a person.
const visible = ` AND deleted_at IS NULL`

// Run reads one run that the tenant may see. When many runs are read at the same time, several of them share a query. Error:
// lifecycle.ErrNotFound, also for a deleted run or another tenant's.
func (s *Store) Run(ctx context.Context, ref lifecycle.Ref, tenant lifecycle.Tenant) (lifecycle.Run, error) {
	run, err := s.reads[ref.Kind].do(ctx, wish{ref.ID, tenant})
	if errors.Is(err, lifecycle.ErrOutcomeUnknown) { // a read leaves nothing behind
		return lifecycle.Run{}, fmt.Errorf("store: read a run: no answer in time: %w", lifecycle.ErrUnavailable)
	}
	return run, err
}

// wish asks for a run within a tenant.
type wish struct {
	id     string
	tenant lifecycle.Tenant
}

// readAll reads a batch of runs of one kind.
func (s *Store) readAll(ctx context.Context, kind lifecycle.Kind, batch []wish) []answer[lifecycle.Run] {
	ids := make([]string, len(batch))
	for i, w := range batch {
		ids[i] = w.id
	}
	var rows []row
	err := failed(ctx, "read runs", s.many(ctx, &rows, selectVisible[kind], pq.Array(ids)))
	found := make(map[string]answer[lifecycle.Run], len(rows))
	for _, r := range rows {
		run, err := r.run(kind)
		found[r.ID] = answer[lifecycle.Run]{run, err}
	}
	answers := make([]answer[lifecycle.Run], len(batch))
	for i, w := range batch {
		a, there := found[w.id]
		switch {
		case err != nil:
			answers[i].err = err
		case !there || a.value.Tenant != w.tenant:
			answers[i].err = lifecycle.ErrNotFound
		default:
			answers[i] = a
		}
	}
	return answers
}

var selectVisible = map[lifecycle.Kind]string{
	lifecycle.WF2Des:  `SELECT ` + columns[lifecycle.WF2Des] + ` FROM wf2des WHERE id = ANY($1)` + visible,
	lifecycle.Code2WF: `SELECT ` + columns[lifecycle.Code2WF] + ` FROM code2wf WHERE id = ANY($1)` + visible,
}

// RunOfAnyTenant reads one run on behalf of a worker, deleted or not. Error: lifecycle.ErrNotFound.
func (s *Store) RunOfAnyTenant(ctx context.Context, ref lifecycle.Ref) (lifecycle.Run, error) {
	var r row
	err := s.one(ctx, &r, `SELECT `+columns[ref.Kind]+` FROM `+string(ref.Kind)+` WHERE id = $1`, ref.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return lifecycle.Run{}, lifecycle.ErrNotFound
	}
	if err != nil {
		return lifecycle.Run{}, failed(ctx, "read a run", err)
	}
	return r.run(ref.Kind)
}

// Runs reads those of the runs that are there, deleted ones left out, of whatever tenant: who is shown which of them is the caller's
// business.
func (s *Store) Runs(ctx context.Context, kind lifecycle.Kind, ids []string) ([]lifecycle.Run, error) {
	var rows []row
	err := s.many(ctx, &rows, selectVisible[kind], pq.Array(ids))
	if err != nil {
		return nil, failed(ctx, "read runs", err)
	}
	return runs(kind, rows)
}

// Versions reads the UpdatedAt of those of the runs that are there, deleted ones left out, by id. It is what has to be asked to know
// that nothing has changed.
func (s *Store) Versions(ctx context.Context, kind lifecycle.Kind, ids []string) (map[string]time.Time, error) {
	var rows []struct {
		ID        string    `db:"id"`
		UpdatedAt time.Time `db:"updated_at"`
	}
	err := s.many(ctx, &rows, `SELECT id, updated_at FROM `+string(kind)+` WHERE id = ANY($1)`+visible, pq.Array(ids))
	versions := make(map[string]time.Time, len(rows))
	for _, r := range rows {
		versions[r.ID] = r.UpdatedAt.UTC()
	}
	return versions, failed(ctx, "read versions", err)
}

// KnowsUser reports whether the platform's "user" table holds the subject, so that audit columns may name it.
func (s *Store) KnowsUser(ctx context.Context, subject string) (bool, error) {
	var known bool
	err := s.one(ctx, &known, `SELECT EXISTS (SELECT FROM "user" WHERE cognito_sub = $1)`, subject)
	return known, failed(ctx, "look up the user", err)
}

// HasProject reports whether the tenant's project exists in its organization.
func (s *Store) HasProject(ctx context.Context, tenant lifecycle.Tenant) (bool, error) {
	var known bool
	err := s.one(ctx, &known, `SELECT EXISTS (SELECT FROM project WHERE id = $1 AND organization_id = $2)`, tenant.ProjectID, tenant.OrganizationID)
	return known, failed(ctx, "look up the project", err)
}
