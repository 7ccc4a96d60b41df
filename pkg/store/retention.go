package store

import (
	"context"
	"fmt"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/lib/pq"
)

// LetGo is what a step of retention has deleted of what was kept about runs that have ended, or were deleted, and have not changed
// since for longer than a set time. The rows themselves stay. An open run is never touched, nor one of which something is still to be
// told. Idempotency-Keys need no part in it: they are as old as their run, and stand for a day only (ForgetKeys).
type LetGo struct {
	Lines   int `db:"lines"`   // of timelines
	Entries int `db:"entries"` // of the outbox: skipped, or set aside
}

// LetGoEnded looks at one page of the runs of a kind, oldest first and at most limit of them, that were made longer ago than keep and
// have their whole timeline still; after is the last id of the page before. It returns the last id of this page, "" at the end.
//
// The newest line of a run stays until the run is deleted: what happens later goes on counting from it, so that the public feed never
// says two things under one id.
func (s *Store) LetGoEnded(ctx context.Context, kind lifecycle.Kind, keep time.Duration, after string, limit int) (string, LetGo, error) {
	var ids []string
	if err := s.many(ctx, &ids, selectWhole, kind, after, keep.Microseconds(), limit); err != nil || len(ids) == 0 {
		return "", LetGo{}, failed(ctx, "look for old timelines", err)
	}
	gone, err := s.letGo(ctx, kind, keep, ids)
	return ids[len(ids)-1], gone, err
}

// LetGoDeleted lets go of all that is kept about up to limit runs of a kind that were deleted longer ago than keep.
func (s *Store) LetGoDeleted(ctx context.Context, kind lifecycle.Kind, keep time.Duration, limit int) (LetGo, error) {
	var ids []string
	if err := s.many(ctx, &ids, selectDeleted, kind, keep.Microseconds(), limit); err != nil || len(ids) == 0 {
		return LetGo{}, failed(ctx, "look for deleted runs", err)
	}
	return s.letGo(ctx, kind, keep, ids)
}

// LetGoSkipped deletes up to limit outbox entries of ended runs that were skipped longer ago than keep, and says how many there were.
func (s *Store) LetGoSkipped(ctx context.Context, keep time.Duration, limit int) (int, error) {
	var n int
	err := s.one(ctx, &n, deleteSkipped, keep.Microseconds(), limit)
	return n, failed(ctx, "let skipped entries go", err)
}

// letGo deletes what is kept about those of the runs that are past their time. Their rows are locked first and everything is looked at
// afterwards, so that nobody can add to a run meanwhile; a run that somebody else has locked is left for another time.
func (s *Store) letGo(ctx context.Context, kind lifecycle.Kind, keep time.Duration, ids []string) (gone LetGo, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	if err := s.prepare(ctx, lockEnded[kind], deleteKept[kind]); err != nil {
		return gone, failed(ctx, "let go", err)
	}
	tx, err := s.db.BeginTxx(ctx, nil)
	if err != nil {
		return gone, failed(ctx, "let go", err)
	}
	defer tx.Rollback() // after a commit this does nothing
	var locked []string
	if err := s.manyIn(ctx, tx, &locked, lockEnded[kind], pq.Array(ids), keep.Microseconds()); err != nil || len(locked) == 0 {
		return gone, failed(ctx, "lock ended runs", err)
	}
	if err := s.oneIn(ctx, tx, &gone, deleteKept[kind], pq.Array(locked)); err != nil {
		return LetGo{}, failed(ctx, "let go", err)
	}
	return gone, uncertain(ctx, "let go", tx.Commit())
}

const (
	// Ids are UUIDv7 and begin with the time: of those that are made later than the time in question none can have ended before it.
	selectWhole = `SELECT run_id FROM run_event
WHERE kind = $1 AND seq = 1 AND run_id > $2 AND run_id < (SELECT substr(hex, 1, 8) || '-' || substr(hex, 9) FROM (SELECT
	lpad(to_hex((1000 * extract(epoch FROM now() - $3 * interval '1 microsecond'))::bigint), 12, '0') AS hex) AS made)
ORDER BY run_id LIMIT $4`

	// What a run has still to tell is looked up run by run (hence OFFSET 0), as in claimDue.
	selectDeleted = `SELECT run_id FROM run_event
WHERE what = 'deleted' AND kind = $1 AND at < now() - $2 * interval '1 microsecond' AND NOT EXISTS (
	SELECT FROM outbox WHERE settled_at IS NULL AND outbox.run_id = run_event.run_id OFFSET 0)
ORDER BY at LIMIT $3`

	deleteSkipped = `
WITH old AS (
	DELETE FROM outbox WHERE id = ANY(ARRAY(
		SELECT id FROM outbox o WHERE state = 'skipped' AND settled_at < now() - $1 * interval '1 microsecond'
			AND coalesce((SELECT status FROM wf2des WHERE id = o.run_id), (SELECT status FROM code2wf WHERE id = o.run_id)) IS DISTINCT FROM '0'
		ORDER BY settled_at LIMIT $2 FOR UPDATE SKIP LOCKED))
	RETURNING 1
)
SELECT count(*) FROM old`
)

var (
	lockEnded  = map[lifecycle.Kind]string{lifecycle.WF2Des: lockEndedOf(lifecycle.WF2Des), lifecycle.Code2WF: lockEndedOf(lifecycle.Code2WF)}
	deleteKept = map[lifecycle.Kind]string{lifecycle.WF2Des: deleteKeptOf(lifecycle.WF2Des), lifecycle.Code2WF: deleteKeptOf(lifecycle.Code2WF)}
)

func lockEndedOf(kind lifecycle.Kind) string {
	return `SELECT id FROM ` + string(kind) + ` WHERE id = ANY($1) AND status <> '0' AND updated_at < now() - $2 * interval '1 microsecond'
ORDER BY id FOR UPDATE SKIP LOCKED`
}

func deleteKeptOf(kind lifecycle.Kind) string {
	return fmt.Sprintf(`
WITH quiet AS MATERIALIZED (
	SELECT id, deleted_at IS NOT NULL AS deleted FROM %[1]s WHERE id = ANY($1) AND NOT EXISTS (
		SELECT FROM outbox WHERE settled_at IS NULL AND run_id = %[1]s.id OFFSET 0)
), lines AS (
	DELETE FROM run_event line USING quiet
	WHERE line.kind = '%[1]s' AND line.run_id = ANY($1) AND line.run_id = quiet.id AND (deleted OR EXISTS (
		SELECT FROM run_event newer WHERE newer.kind = '%[1]s' AND newer.run_id = line.run_id AND newer.seq > line.seq))
	RETURNING 1
), entries AS (
	DELETE FROM outbox USING quiet WHERE settled_at IS NOT NULL AND run_id = ANY($1) AND run_id = quiet.id RETURNING 1
)
SELECT (SELECT count(*) FROM lines) AS lines, (SELECT count(*) FROM entries) AS entries`, kind)
}
