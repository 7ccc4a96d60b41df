package rows

import (
	"context"
	"database/sql"
	"fmt"

	"framerun.dev/pkg/lifecycle"
)

// Open writes n open wf2des runs with the numbers from first on, all in state, with the timeline that leads there and without
// anything in the outbox: their jobs have long been sent. Node and file follow from the number as those of new runs do.
func Open(ctx context.Context, db *sql.DB, state lifecycle.State, first int64, n int) error {
	story, ok := stories[state]
	if !ok {
		return fmt.Errorf("rows: no story leads to %s", state)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("rows: open runs: %w", err)
	}
	defer tx.Rollback()
	for _, statement := range []string{`SET LOCAL session_replication_role = replica`, `SET LOCAL synchronous_commit = off`} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("rows: open runs: %w", err)
		}
	}
	last := first + int64(n) - 1
	if _, err := tx.ExecContext(ctx, openRuns, first, last, story.phase); err != nil {
		return fmt.Errorf("rows: open runs: %w", err)
	}
	if _, err := tx.ExecContext(ctx, openEvents, first, last, story.lines); err != nil {
		return fmt.Errorf("rows: their timelines: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("rows: open runs: %w", err)
	}
	return nil
}

// story is the phase of an open state (seed: wf2des_phase) and how many lines the timeline has by then.
type story struct {
	phase string
	lines int
}

var stories = map[lifecycle.State]story{
	lifecycle.Parsing: {"0", 1}, lifecycle.AwaitingConfirm: {"1", 2}, lifecycle.Assembling: {"2", 3},
}

var openRuns = `
INSERT INTO wf2des (` + columns + `)
SELECT ` + SQLID("n") + `, 1, 1, ` + SQLFileKey("n") + `, '9:' || n, 'Sign in', '` + Prompt + `', '1', '0', $3, now(), now(),
	'bench-user-000', 'bench-user-000'
FROM generate_series($1::bigint, $2::bigint) n`

var openEvents = `
INSERT INTO run_event (kind, run_id, seq, what, outcome, actor_kind, actor, from_state, to_state, attempt, version, at)
SELECT 'wf2des', ` + SQLID("n") + `, seq, what, 'applied', who, 'bench-user-000', was, became, 1, now(), now()
FROM generate_series($1::bigint, $2::bigint) n, (VALUES
	(1, 'created', 'user', NULL, 'parsing'),
	(2, 'parsed', 'worker', 'parsing', 'awaiting_confirm'),
	(3, 'confirmed', 'user', 'awaiting_confirm', 'assembling')) AS line (seq, what, who, was, became)
WHERE seq <= $3`

// Untold puts a job and an event for each of the rows into the outbox, as if the rows had just been made.
func Untold(ctx context.Context, db *sql.DB, first int64, n int) error {
	if _, err := db.ExecContext(ctx, untold, first, first+int64(n)-1); err != nil {
		return fmt.Errorf("rows: outbox: %w", err)
	}
	return nil
}

var untold = `
INSERT INTO outbox (destination, work, kind, run_id, attempt, stage, seq)
SELECT destination, work, 'wf2des', ` + SQLID("n") + `, 1, stage, seq
FROM generate_series($1::bigint, $2::bigint) n,
	(VALUES ('jobs', 'wf2des', 'parse', NULL), ('events', '', NULL, 1)) AS message (destination, work, stage, seq)`
