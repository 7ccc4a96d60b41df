// Package rows fills databases with runs, for measuring: a long history, people who ask, and open runs in a wished state, all
// written by INSERT … SELECT and not one by one. A row's number says all about it, so that SQL, pgbench scripts and requests
// agree on ids without telling each other.
package rows

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Every second row of the history is of Project; the others are spread over other organizations.
const (
	Organization = 1
	Project      = 1
	// Files is how many Figma files Project's rows are spread over.
	Files = 1000
	// FirstOpen is the number from which Open's callers count: behind any history, and of twelve digits for long.
	FirstOpen = 100_000_000_000
)

// idPrefix makes ids that look like UUIDv7 of a summer that is over, in the order of their numbers.
const idPrefix = "01990000-0000-7000-8000-"

// ID is the id of row n.
func ID(n int64) string { return fmt.Sprintf("%s%012x", idPrefix, n) }

// SQLID is the SQL of the id of the row whose number n is the SQL of.
func SQLID(n string) string { return "'" + idPrefix + "' || lpad(to_hex(" + n + "), 12, '0')" }

// FileKey is the Figma file that new runs of number n belong to.
func FileKey(n int64) string { return fmt.Sprintf("BenchFile%013d", n%Files) }

// SQLFileKey is FileKey in SQL.
func SQLFileKey(n string) string {
	return fmt.Sprintf("'BenchFile' || lpad((%s %% %d)::text, 13, '0')", n, Files)
}

// Prompt is what every new run asks for.
const Prompt = "Use the sign-in patterns of our design system. Keep the order of the fields, show errors beside them, and no more than one primary button."

// Caller is the k-th person who asks.
func Caller(k int) string { return fmt.Sprintf("bench-user-%03d", k) }

// Platform makes the people and the tenants that the rows refer to.
func Platform(ctx context.Context, db *sql.DB, callers int) error {
	for _, insert := range []string{
		`INSERT INTO organization (id, name) SELECT n, 'Tenant ' || n FROM generate_series(100, 196) n ON CONFLICT DO NOTHING`,
		`INSERT INTO project (id, organization_id) SELECT n, n FROM generate_series(100, 196) n ON CONFLICT DO NOTHING`,
		fmt.Sprintf(`INSERT INTO "user" (cognito_sub) SELECT 'bench-user-' || lpad(n::text, 3, '0')
			FROM generate_series(0, %d) n ON CONFLICT DO NOTHING`, callers-1),
	} {
		if _, err := db.ExecContext(ctx, insert); err != nil {
			return fmt.Errorf("rows: platform: %w", err)
		}
	}
	return nil
}

// Count counts rows of Open, or of a pgbench script, by number: those of first … first+n-1 for which condition holds.
func Count(ctx context.Context, db *sql.DB, table string, first int64, n int, condition string) (count int, err error) {
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM `+table+` WHERE id BETWEEN $1 AND $2 AND `+condition,
		ID(first), ID(first+int64(n)-1)).Scan(&count)
	if err != nil {
		return 0, fmt.Errorf("rows: counting: %w", err)
	}
	return count, nil
}

// columns of wf2des that history and open runs share.
var columns = strings.Join([]string{"id", "organization_id", "project_id", "figma_file_key", "wf_node_id", "screen_id", "prompt",
	"trigger_surface", "status", "phase", "created_at", "updated_at", "created_by", "updated_by"}, ", ")
