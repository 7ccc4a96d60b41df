package rows

import (
	"context"
	"database/sql"
	"fmt"
)

// History writes the wf2des rows from … to with the first line of their timelines, as a team that has worked for months would have
// left them: most of them completed and placed, some failed or called off, one in fifty still open. Afterwards the tables are
// vacuumed, analyzed and on the disk, as they would be by then.
func History(ctx context.Context, db *sql.DB, from, to int64) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("rows: history: %w", err)
	}
	defer conn.Close()
	for _, s := range []struct {
		statement string
		args      []any
	}{
		{`SET session_replication_role = replica`, nil}, // the foreign keys hold by the way the rows are made
		{historyRuns, []any{from, to}},
		{historyEvents, []any{from, to}},
		{`RESET session_replication_role`, nil},
		{`VACUUM ANALYZE wf2des`, nil},
		{`VACUUM ANALYZE run_event`, nil},
		{`CHECKPOINT`, nil},
	} {
		if _, err := conn.ExecContext(ctx, s.statement, s.args...); err != nil {
			return fmt.Errorf("rows: history: %w", err)
		}
	}
	return nil
}

// A row a second since the beginning of the history, so that created_at and id are in the same order.
var historyRuns = `
INSERT INTO wf2des (` + columns + `, edge, error_message, result_url, flag_count, materialized_at, score, score_version)
SELECT id, CASE WHEN mine THEN 1 ELSE other END, CASE WHEN mine THEN 1 ELSE other END, ` + SQLFileKey("n / 2") + `,
	'1:' || n, 'Screen ' || n % 50, '` + Prompt + `', '1', status::wf2des_status,
	CASE WHEN status = '0' THEN '1'::wf2des_phase END, made, made + interval '40 seconds', 'bench-user-000', 'framerun-worker',
	(n / 2 % 2)::text::wf2des_edge,
	CASE WHEN status = '2' THEN 'The model was not available.' END,
	CASE WHEN status = '1' THEN 'wf2des/' || id || '/1/result.json' END,
	CASE WHEN status = '1' THEN n % 4 END,
	CASE WHEN status = '1' AND n % 10 < 8 THEN made + interval '2 minutes' END,
	CASE WHEN status = '1' THEN 0.9133 END, CASE WHEN status = '1' THEN 'ds@1.0' END
FROM (SELECT n, ` + SQLID("n") + ` AS id, n % 2 = 0 AS mine, 100 + n % 97 AS other,
	timestamptz '2025-09-01 00:00Z' + n * interval '1 second' AS made,
	CASE WHEN n / 2 % 50 = 0 THEN '0' WHEN n / 2 % 25 = 1 THEN '2' WHEN n / 2 % 25 = 2 THEN '4' ELSE '1' END AS status
	FROM generate_series($1::bigint, $2::bigint) n) AS row`

const historyEvents = `
INSERT INTO run_event (kind, run_id, seq, what, outcome, actor_kind, actor, to_state, attempt, version, at)
SELECT 'wf2des', id, 1, 'created', 'applied', 'user', created_by, 'parsing', 1, created_at, created_at
FROM (SELECT '` + idPrefix + `' || lpad(to_hex(n), 12, '0') AS id FROM generate_series($1::bigint, $2::bigint) n) AS wanted JOIN wf2des USING (id)`
