package fuzz

import (
	"context"
	"database/sql"
	"fmt"
)

// invariant is a query for rows that must not be: what it finds breaks the rule.
type invariant struct{ rule, query string }

// both is every run of either kind, in the columns that the rules speak of.
const both = `(SELECT 'wf2des' AS kind, id, status::text, phase::text, attempt, result_url, error_message, flag_count, score, score_version,
	feedback_status::text, materialized_at, created_at, updated_at, created_by, updated_by, deleted_at FROM wf2des
UNION ALL SELECT 'code2wf', id, status::text, NULL, attempt, result_url, error_message, flag_count, NULL, NULL,
	NULL, materialized_at, created_at, updated_at, created_by, updated_by, deleted_at FROM code2wf) AS r`

// applied is the last applied line of each run and what its ending said.
const applied = `LATERAL (SELECT max(version) AS version, (array_agg(actor ORDER BY seq DESC))[1] AS actor,
	(array_agg(to_state ORDER BY seq DESC))[1] AS state, max(data->>'result_url') AS result_url, max(data->>'error_message') AS error_message,
	max((data->>'flag_count')::int) AS flag_count, max((data->>'score_e4')::int) AS score, max(data->>'score_version') AS score_version,
	(array_agg(data->>'feedback_status' ORDER BY seq DESC) FILTER (WHERE what = 'rated'))[1] AS feedback,
	min(at) FILTER (WHERE what = 'placed') AS placed, min(at) FILTER (WHERE what = 'deleted') AS deleted,
	count(*) FILTER (WHERE what IN ('completed', 'failed', 'rejected', 'cancelled')) AS endings
	FROM run_event WHERE outcome = 'applied' AND kind = r.kind AND run_id = r.id) AS e`

// invariants are those of the suite that one database can be asked for.
var invariants = []invariant{
	{"1: a row has a maker, and its first line is the creation by that maker", `SELECT r.id FROM ` + both + ` WHERE NOT EXISTS (SELECT FROM run_event e
		WHERE e.kind = r.kind AND e.run_id = r.id AND seq = 1 AND what = 'created' AND actor = created_by AND at = created_at)`},
	{"1: no timeline without its row", `SELECT run_id FROM run_event e WHERE seq = 1 AND NOT EXISTS (SELECT FROM ` + both + ` WHERE r.kind = e.kind AND r.id = run_id)`},
	{"4: one open row per project, file, node and edge", `SELECT min(id) FROM wf2des WHERE status = '0'
		GROUP BY project_id, figma_file_key, wf_node_id, edge HAVING count(*) > 1`},
	{"5: a run ends once, and nothing moves it after that", `SELECT r.id FROM ` + both + `, ` + applied + ` WHERE endings > 1 OR (endings = 1) <> (status <> '0')`},
	{"5: what an ending said stands in the row", `SELECT r.id FROM ` + both + `, ` + applied + ` WHERE (r.result_url, r.error_message, r.flag_count)
		IS DISTINCT FROM (e.result_url, e.error_message, e.flag_count) OR r.kind = 'wf2des'
		AND (round(r.score * 10000)::int, r.score_version) IS DISTINCT FROM (e.score, e.score_version)`},
	{"6: phase exactly while open", `SELECT id FROM wf2des WHERE (phase IS NULL) <> (status <> '0')`},
	{"6: no step but those of the lifecycle", `SELECT run_id FROM run_event WHERE outcome = 'applied' AND NOT (
		(kind, coalesce(from_state, ''), to_state, what) IN (` + steps + `) OR from_state = to_state AND what IN ('placed', 'rated', 'deleted'))`},
	{"7: endings have what belongs to them", `SELECT id FROM ` + both + ` WHERE status = '1' AND result_url IS NULL OR status = '2' AND coalesce(error_message, '') = ''
		OR kind = 'code2wf' AND status NOT IN ('0', '1', '2')`},
	{"8: placed and rated only when completed, placed once", `SELECT r.id FROM ` + both + `, ` + applied + ` WHERE (materialized_at IS NOT NULL OR feedback_status IS NOT NULL)
		AND status <> '1' OR materialized_at IS DISTINCT FROM placed OR feedback_status IS DISTINCT FROM (CASE feedback WHEN 'fixed' THEN '0' WHEN 'adopted' THEN '1' END)`},
	{"9: deleted implies ended", `SELECT r.id FROM ` + both + `, ` + applied + ` WHERE deleted_at IS NOT NULL AND status = '0' OR deleted_at IS DISTINCT FROM deleted`},
	{"11: no gap in a timeline", `SELECT run_id FROM run_event GROUP BY kind, run_id HAVING max(seq) <> count(*) OR min(seq) <> 1`},
	{"11: a step begins where the last one ended, and later", `SELECT run_id FROM (SELECT *, lag(to_state) OVER w AS was, lag(version) OVER w AS before
		FROM run_event WINDOW w AS (PARTITION BY kind, run_id ORDER BY seq)) AS l
		WHERE seq > 1 AND (from_state IS DISTINCT FROM was OR (outcome = 'applied') <> (version > before) OR version < before)`},
	{"11: the timeline replays to the row", `SELECT r.id FROM ` + both + `, ` + applied + ` WHERE version <> updated_at OR state <> (
		CASE WHEN status = '0' AND kind = 'code2wf' THEN 'processing' WHEN status = '0' 
			THEN (ARRAY['parsing', 'awaiting_confirm', 'assembling'])[phase::int + 1]
		ELSE (ARRAY['completed', 'failed', 'rejected', 'cancelled'])[status::int] END)`},
	{"16: nothing waits and nothing was set aside", `SELECT run_id FROM outbox WHERE state <> 'skipped'`},
	{"16: only the jobs of ended runs were skipped", `SELECT o.run_id FROM outbox o WHERE o.state = 'skipped' AND (o.destination <> 'jobs'
		OR EXISTS (SELECT FROM ` + both + ` WHERE r.kind = o.kind AND r.id = o.run_id AND status = '0'))`},
	{"20: attempt stays, and updated_by is who made the last step",
		`SELECT r.id FROM ` + both + `, ` + applied + ` WHERE attempt <> 1 OR updated_by <> actor`},
}

// steps are the moves that a run can make.
const steps = `('wf2des', '', 'parsing', 'created'), ('code2wf', '', 'processing', 'created'),
	('wf2des', 'parsing', 'awaiting_confirm', 'parsed'), ('wf2des', 'parsing', 'assembling', 'parsed'),
	('wf2des', 'awaiting_confirm', 'assembling', 'confirmed'), ('wf2des', 'awaiting_confirm', 'rejected', 'rejected'),
	('wf2des', 'assembling', 'completed', 'completed'), ('wf2des', 'parsing', 'completed', 'completed'),
	('code2wf', 'processing', 'completed', 'completed'),
	('wf2des', 'parsing', 'failed', 'failed'), ('wf2des', 'awaiting_confirm', 'failed', 'failed'), ('wf2des', 'assembling', 'failed', 'failed'),
	('code2wf', 'processing', 'failed', 'failed'),
	('wf2des', 'parsing', 'cancelled', 'cancelled'), ('wf2des', 'awaiting_confirm', 'cancelled', 'cancelled'), ('wf2des', 'assembling', 'cancelled', 'cancelled')`

// broken asks for every invariant, and tells what is found.
func broken(ctx context.Context, db *sql.DB) (found []string, err error) {
	for _, i := range invariants {
		var count int
		var example sql.NullString
		err := db.QueryRowContext(ctx, `SELECT count(*), min(id) FROM (`+i.query+`) AS found (id)`).Scan(&count, &example)
		if err != nil {
			return nil, fmt.Errorf("fuzz: invariant %s: %w", i.rule, err)
		}
		if count > 0 {
			found = append(found, fmt.Sprintf("invariant %s: %d exceptions, such as %s", i.rule, count, example.String))
		}
	}
	return found, nil
}
