package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"framerun.dev/pkg/lifecycle"
)

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
	query, args := selectList(columns[kind], kind, tenant, f, after, limit)
	var rows []row
	if err := s.seldom(ctx, &rows, query, args...); err != nil {
		return nil, failed(ctx, "list runs", err)
	}
	return runs(kind, rows)
}

// Listed is a run in a list, and its version.
type Listed struct {
	ID        string    `db:"id"`
	UpdatedAt time.Time `db:"updated_at"`
}

// ListVersions is List for somebody who may know the runs already: of each it tells no more than the version.
func (s *Store) ListVersions(ctx context.Context, kind lifecycle.Kind, tenant lifecycle.Tenant, f Filter, after Position, limit int) ([]Listed, error) {
	query, args := selectList(`id, updated_at`, kind, tenant, f, after, limit)
	var listed []Listed
	err := failed(ctx, "list versions", s.seldom(ctx, &listed, query, args...))
	for i := range listed {
		listed[i].UpdatedAt = listed[i].UpdatedAt.UTC()
	}
	return listed, err
}

// selectList puts the query together. Codes and the limit stand in its text: only when PostgreSQL sees them does it find the index that
// is made for them (migrations/00007_list_indexes.sql).
func selectList(what string, kind lifecycle.Kind, tenant lifecycle.Tenant, f Filter, after Position, limit int) (query string, args []any) {
	c := conditions{args: []any{tenant.OrganizationID, tenant.ProjectID}}
	c.narrow(f)
	if after.ID != "" {
		c.add(`(created_at, id) < (%s, %s)`, after.CreatedAt, after.ID)
	}
	return `SELECT ` + what + ` FROM ` + string(kind) + ` WHERE organization_id = $1 AND project_id = $2` + visible +
		c.where.String() + fmt.Sprintf(` ORDER BY created_at DESC, id DESC LIMIT %d`, limit), c.args
}

// conditions grows a WHERE clause and its parameters together. Texts come from this file and the code maps only; what callers give
// is always a parameter.
type conditions struct {
	where strings.Builder
	args  []any
}

// add puts a placeholder for each argument into the condition.
func (c *conditions) add(condition string, args ...any) {
	places := make([]any, len(args))
	for i := range args {
		places[i] = fmt.Sprintf("$%d", len(c.args)+1+i)
	}
	c.where.WriteString(` AND ` + fmt.Sprintf(condition, places...))
	c.args = append(c.args, args...)
}

func (c *conditions) narrow(f Filter) {
	if f.FigmaFileKey != "" {
		c.add(`figma_file_key = %s`, f.FigmaFileKey)
	}
	if f.Status != "" {
		c.add(`status = '` + statusCodes[f.Status] + `'`)
	}
	if f.Phase != "" { // only open runs have one, and they have an index
		c.add(`status = '` + statusCodes[lifecycle.StatusProcessing] + `' AND phase = '` + phaseCodes[f.Phase] + `'`)
	}
	if f.Edge != "" {
		c.add(`edge = '` + edgeCodes[f.Edge] + `'`)
	}
	if f.ScreenID != "" {
		c.add(`screen_id = %s`, f.ScreenID)
	}
	if f.Materialized != nil {
		c.add(map[bool]string{true: `materialized_at IS NOT NULL`,
			false: `status = '` + statusCodes[lifecycle.StatusCompleted] + `' AND materialized_at IS NULL`}[*f.Materialized])
	}
	if f.Flagged != nil {
		c.add(map[bool]string{true: `flag_count > 0`, false: `coalesce(flag_count, 0) = 0`}[*f.Flagged])
	}
	if !f.CreatedAfter.IsZero() {
		c.add(`created_at > %s`, f.CreatedAfter)
	}
	if !f.CreatedBefore.IsZero() {
		c.add(`created_at < %s`, f.CreatedBefore)
	}
}
