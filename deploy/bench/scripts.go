package main

import (
	"fmt"

	"framerun.dev/deploy/bench/pgbench"
	"framerun.dev/deploy/bench/rows"
	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
)

// The baselines write what the suite writes: the row, its timeline line and its outbox entries, with the same columns filled. What the
// suite looks up besides (project, caller, page import, the row before the change) they are spared.

var (
	id      = rows.SQLID(":n::bigint")
	fileKey = rows.SQLFileKey(":n::bigint")
)

// Names of pgbench's three ways.
const (
	fourTrips = "pgbench, 4 round trips"
	statement = "pgbench, 1 statement"
	pipelined = "pgbench, pipelined"
)

// creating are the baselines of a new run.
func creating(kind lifecycle.Kind) []script {
	own, ownValues, state, stage := "wf_node_id, prompt, trigger_surface, phase", "'9:' || :n::bigint, '"+rows.Prompt+"', '1', '0'", "parsing", "parse"
	if kind == lifecycle.Code2WF {
		own, ownValues, state, stage = "page_import_id", "'"+platform.PageImportID+"'", "processing", "generate"
	}
	row := fmt.Sprintf(`INSERT INTO %s (id, organization_id, project_id, figma_file_key, screen_id, status, created_by, updated_by, %s)
VALUES (%s, 1, 1, %s, 'Sign in', '0', 'bench-user-000', 'bench-user-000', %s)`, kind, own, id, fileKey, ownValues)
	line := fmt.Sprintf(`INSERT INTO run_event (kind, run_id, seq, what, outcome, actor_kind, actor, to_state, attempt, version, at)
SELECT '%s', %s, 1, 'created', 'applied', 'user', 'bench-user-000', '%s', 1, now(), now()`, kind, id, state)
	told := fmt.Sprintf(`INSERT INTO outbox (destination, kind, run_id, attempt, stage, seq)
SELECT message.destination, '%s', run_id, 1, message.stage, message.seq
FROM line, LATERAL (VALUES ('jobs', '%s', NULL), ('events', NULL, line.seq)) AS message (destination, stage, seq)`, kind, stage)
	return three(string(kind), lifecycle.None, "status = '0'", row+" RETURNING id", line, told)
}

// completing are the baselines of the webhook that ends a run.
func completing() []script {
	row := `UPDATE wf2des SET status = '1', phase = NULL, result_url = 'wf2des/' || id || '/1/result.json', flag_count = 2, score = 0.9133,
	score_version = 'ds@1.0', updated_at = greatest(clock_timestamp(), updated_at + interval '1 microsecond'), updated_by = 'framerun-worker'
WHERE id = ` + id + ` AND attempt = 1 AND status = '0' AND phase = '2' RETURNING id`
	data := `{"result_url": "wf2des/result.json", "flag_count": 2, "score_e4": 9133, "score_version": "ds@1.0"}`
	told := `INSERT INTO outbox (destination, kind, run_id, attempt, seq) SELECT destination, 'wf2des', run_id, 1, seq
FROM line, (VALUES ('events'), ('designs')) AS message (destination)`
	return three("wf2des", lifecycle.Assembling, "status = '1'", row, nextLine("completed", "worker", "assembling", "completed", data), told)
}

// confirming are the baselines of the designer's confirmation.
func confirming() []script {
	row := `UPDATE wf2des SET phase = '2', updated_at = greatest(clock_timestamp(), updated_at + interval '1 microsecond'),
	updated_by = 'bench-user-000'
WHERE id = ` + id + ` AND attempt = 1 AND status = '0' AND phase = '1' RETURNING id`
	told := `INSERT INTO outbox (destination, kind, run_id, attempt, stage, seq)
SELECT message.destination, 'wf2des', run_id, 1, message.stage, message.seq
FROM line, LATERAL (VALUES ('jobs', 'assemble', NULL), ('events', NULL, line.seq)) AS message (destination, stage, seq)`
	return three("wf2des", lifecycle.AwaitingConfirm, "phase = '2'", row, nextLine("confirmed", "user", "awaiting_confirm", "assembling", "{}"), told)
}

func nextLine(what, who, from, to, data string) string {
	return fmt.Sprintf(`INSERT INTO run_event (kind, run_id, seq, what, outcome, actor_kind, actor, from_state, to_state, attempt, version, at, data)
SELECT 'wf2des', %[1]s, (SELECT coalesce(max(seq), 0) + 1 FROM run_event WHERE kind = 'wf2des' AND run_id = %[1]s),
	'%[2]s', 'applied', '%[3]s', 'bench-user-000', '%[4]s', '%[5]s', 1, now(), now(), '%[6]s'`, id, what, who, from, to, data)
}

// three makes the same work into one statement, four round trips and one pipeline. In the one statement the row's RETURNING feeds
// the timeline, so that a row that is not there tells nobody.
func three(table string, from lifecycle.State, then, row, line, told string) []script {
	rest := "WITH line AS (" + line + " RETURNING run_id, seq)\n" + told
	whole := "WITH moved AS (" + row + "), line AS (" + line + " FROM moved RETURNING run_id, seq)\n" + told
	return []script{
		{fourTrips, pgbench.Trips(row, rest), from, table, then},
		{statement, pgbench.One(whole), from, table, then},
		{pipelined, pgbench.Pipelined(row, rest), from, table, then},
	}
}
