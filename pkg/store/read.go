package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
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

// Filter narrows a list. Zero fields do not narrow. Those marked WF2Des must stay zero for Code2WF.
type Filter struct {
	FigmaFileKey  string
	Status        lifecycle.Status
	Phase         lifecycle.Phase // WF2Des
	Edge          lifecycle.Edge  // WF2Des
	ScreenID      string
	Materialized  *bool // false: completed runs that nobody has placed yet, the unplaced inbox
	Flagged       *bool // true: completed with at least one flag
	CreatedAfter  time.Time
	CreatedBefore time.Time
}

// Position is a place in a list, newest first; the zero Position is the beginning.
type Position struct {
	CreatedAt time.Time
	ID        string
}

// List reads at most limit runs of the tenant after the position, newest first. Runs that move on between two pages are neither
// lost nor doubled: the order is by creation, which never changes.
func (s *Store) List(ctx context.Context, kind lifecycle.Kind, tenant lifecycle.Tenant, f Filter, after Position, limit int) ([]lifecycle.Run, error) {
	c := conditions{args: []any{tenant.OrganizationID, tenant.ProjectID}}
	c.narrow(f)
	if after.ID != "" {
		c.add(`(created_at, id) < (`+c.next()+`, $`+fmt.Sprint(len(c.args)+2)+`)`, after.CreatedAt, after.ID)
	}
	query := `SELECT ` + columns[kind] + ` FROM ` + string(kind) + ` WHERE organization_id = $1 AND project_id = $2` + visible +
		c.where.String() + ` ORDER BY created_at DESC, id DESC LIMIT ` + c.next()
	var rows []row
	// Not prepared: there are thousands of combinations of filters, and PostgreSQL would remember each of them for ever.
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	if err := s.db.SelectContext(ctx, &rows, query, append(c.args, limit)...); err != nil {
		return nil, failed(ctx, "list runs", err)
	}
	return runs(kind, rows)
}

// conditions grows a WHERE clause and its parameters together. Texts come from this file only; values are always parameters.
type conditions struct {
	where strings.Builder
	args  []any
}

func (c *conditions) next() string { return fmt.Sprintf("$%d", len(c.args)+1) }

func (c *conditions) add(condition string, args ...any) {
	c.where.WriteString(` AND ` + condition)
	c.args = append(c.args, args...)
}

func (c *conditions) narrow(f Filter) {
	if f.FigmaFileKey != "" {
		c.add(`figma_file_key = `+c.next(), f.FigmaFileKey)
	}
	if f.Status != "" {
		c.add(`status = `+c.next(), statusCodes[f.Status])
	}
	if f.Phase != "" {
		c.add(`phase = `+c.next(), phaseCodes[f.Phase])
	}
	if f.Edge != "" {
		c.add(`edge = `+c.next(), edgeCodes[f.Edge])
	}
	if f.ScreenID != "" {
		c.add(`screen_id = `+c.next(), f.ScreenID)
	}
	if f.Materialized != nil {
		c.add(map[bool]string{true: `materialized_at IS NOT NULL`, false: `status = '1' AND materialized_at IS NULL`}[*f.Materialized])
	}
	if f.Flagged != nil {
		c.add(map[bool]string{true: `flag_count > 0`, false: `coalesce(flag_count, 0) = 0`}[*f.Flagged])
	}
	if !f.CreatedAfter.IsZero() {
		c.add(`created_at > `+c.next(), f.CreatedAfter)
	}
	if !f.CreatedBefore.IsZero() {
		c.add(`created_at < `+c.next(), f.CreatedBefore)
	}
}
