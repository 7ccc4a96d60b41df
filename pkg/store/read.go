package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/lib/pq"
)

// visible is what soft deletion means to every reader on behalf of a person.
const visible = ` AND deleted_at IS NULL`

// Run reads one run that the tenant may see. Error: lifecycle.ErrNotFound, also for a deleted run or another tenant's.
func (s *Store) Run(ctx context.Context, ref lifecycle.Ref, tenant lifecycle.Tenant) (lifecycle.Run, error) {
	return s.read(ctx, ref, ` AND organization_id = $2 AND project_id = $3`+visible, tenant.OrganizationID, tenant.ProjectID)
}

// RunOfAnyTenant reads one run on behalf of a worker, deleted or not. Error: lifecycle.ErrNotFound.
func (s *Store) RunOfAnyTenant(ctx context.Context, ref lifecycle.Ref) (lifecycle.Run, error) {
	return s.read(ctx, ref, ``)
}

func (s *Store) read(ctx context.Context, ref lifecycle.Ref, where string, args ...any) (lifecycle.Run, error) {
	var r row
	err := s.one(ctx, &r, `SELECT `+columns[ref.Kind]+` FROM `+string(ref.Kind)+` WHERE id = $1`+where, append([]any{ref.ID}, args...)...)
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
	err := s.many(ctx, &rows, `SELECT `+columns[kind]+` FROM `+string(kind)+` WHERE id = ANY($1)`+visible, pq.Array(ids))
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
