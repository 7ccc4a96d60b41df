package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// Pulse notes that the worker of this attempt has just spoken, so that the deadline of the run's state begins anew. It writes no run.
// It reports false, and notes nothing, if the run is not open in this attempt: then it has moved on since it was read.
func (s *Store) Pulse(ctx context.Context, run lifecycle.Ref, attempt int) (bool, error) {
	var noted bool
	err := s.one(ctx, &noted, notePulse[run.Kind], run.ID, attempt)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return noted, failed(ctx, "note a pulse", err)
}

var notePulse = map[lifecycle.Kind]string{
	lifecycle.WF2Des:  pulseOf(lifecycle.WF2Des),
	lifecycle.Code2WF: pulseOf(lifecycle.Code2WF),
}

// pulseOf notes a pulse under a share of the run's lock. So whoever holds the lock to end the run either sees this pulse, or is seen by
// it: no worker is told to go on with a run that ends in the same moment for its silence.
func pulseOf(kind lifecycle.Kind) string {
	return `INSERT INTO run_pulse (kind, run_id, attempt, heard_at)
SELECT '` + string(kind) + `', id, attempt, clock_timestamp()
FROM (SELECT id, attempt FROM ` + string(kind) + ` WHERE id = $1 AND attempt = $2 AND status = '0' FOR SHARE) run
ON CONFLICT (kind, run_id) DO UPDATE SET attempt = excluded.attempt, heard_at = clock_timestamp()
RETURNING true`
}

const selectPulses = `SELECT run_id, attempt, heard_at FROM run_pulse WHERE kind = $1 AND run_id = ANY($2)`

// heard tells the batch's guards when the runs' workers were last heard of. The runs are locked, so no pulse of theirs is under way.
func (s *Store) heard(ctx context.Context, tx *sqlx.Tx, kind lifecycle.Kind, batch []lifecycle.Command) ([]lifecycle.Command, error) {
	var silent []string
	for _, cmd := range batch {
		if cmd.If != nil && cmd.If.Silent > 0 {
			silent = append(silent, cmd.Run.ID)
		}
	}
	if len(silent) == 0 {
		return batch, nil
	}
	var pulses []struct {
		RunID   string    `db:"run_id"`
		Attempt int       `db:"attempt"`
		HeardAt time.Time `db:"heard_at"`
	}
	if err := s.manyIn(ctx, tx, &pulses, selectPulses, kind, pq.Array(silent)); err != nil {
		return nil, err
	}
	told := make([]lifecycle.Command, len(batch)) // a guard is the caller's own value: it is copied, not written to
	for i, cmd := range batch {
		for _, p := range pulses {
			if cmd.If != nil && p.RunID == cmd.Run.ID && p.Attempt == cmd.Attempt {
				cmd.If = new(*cmd.If)
				cmd.If.Heard = p.HeardAt.UTC()
			}
		}
		told[i] = cmd
	}
	return told, nil
}

// Heard is when progress of the run's attempt was noted last; zero when none was. Where no deadline is on none is.
func (s *Store) Heard(ctx context.Context, run lifecycle.Ref, attempt int) (time.Time, error) {
	var heard []time.Time
	err := s.many(ctx, &heard, `SELECT heard_at FROM run_pulse WHERE kind = $1 AND run_id = $2 AND attempt = $3`, run.Kind, run.ID, attempt)
	if err != nil || len(heard) == 0 {
		return time.Time{}, failed(ctx, "read a pulse", err)
	}
	return heard[0].UTC(), nil
}

// ForgetPulses clears away up to limit pulses of runs that have ended, and says how many there were.
func (s *Store) ForgetPulses(ctx context.Context, limit int) (int, error) {
	var forgotten int
	err := s.one(ctx, &forgotten, `
WITH ended AS (
	SELECT kind, run_id FROM run_pulse
	WHERE kind = 'wf2des' AND NOT EXISTS (SELECT FROM wf2des WHERE id = run_id AND status = '0')
		OR kind = 'code2wf' AND NOT EXISTS (SELECT FROM code2wf WHERE id = run_id AND status = '0')
	ORDER BY kind, run_id LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
	DELETE FROM run_pulse USING ended WHERE run_pulse.kind = ended.kind AND run_pulse.run_id = ended.run_id RETURNING 1
)
SELECT count(*) FROM gone`, limit)
	return forgotten, failed(ctx, "forget pulses", err)
}
