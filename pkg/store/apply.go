package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/jmoiron/sqlx"
)

// Applied is what became of a command: the outcome, and the run as it stands afterwards.
type Applied struct {
	Outcome lifecycle.Outcome
	Run     lifecycle.Run
}

// Apply carries out cmd: it locks the run, lets lifecycle.Decide say what the command means, and stores row, timeline and outbox
// in the same transaction. A worker's word that came too late is stored in the timeline only; a person's repeated decision
// stores nothing.
//
// Errors: lifecycle.ErrNotFound, *lifecycle.RefusedError and *lifecycle.InvalidError (nothing changed), lifecycle.ErrUnavailable (nothing
// changed, worth another try), lifecycle.ErrOutcomeUnknown (the COMMIT broke; asking again converges).
func (s *Store) Apply(ctx context.Context, cmd lifecycle.Command) (Applied, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	if err := s.prepareApply(ctx, cmd.Run.Kind); err != nil {
		return Applied{}, failed(ctx, "apply", err)
	}
	tx, err := s.db.BeginTxx(ctx, nil)
	if err != nil {
		return Applied{}, failed(ctx, "apply", err)
	}
	defer tx.Rollback() // after a commit this does nothing

	run, now, err := s.lock(ctx, tx, cmd)
	if err != nil {
		return Applied{}, err
	}
	d, err := lifecycle.Decide(run, cmd, now)
	if err != nil || d.Event == nil {
		return Applied{d.Outcome, d.Next}, err
	}
	if err := s.write(ctx, tx, run, d); err != nil {
		return Applied{}, failed(ctx, "apply", err)
	}
	if err := tx.Commit(); err != nil {
		return Applied{}, uncertain(ctx, "apply", err)
	}
	return Applied{d.Outcome, d.Next}, nil
}

// prepareApply makes sure that the statements exist before a transaction holds a connection: preparing takes one of its own.
func (s *Store) prepareApply(ctx context.Context, kind lifecycle.Kind) error {
	for _, query := range []string{selectLocked[kind], storeStep[kind], storeLate} {
		if _, err := s.stmt(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

// lock reads the run and keeps others from changing it until the transaction ends. The time that comes with it is PostgreSQL's,
// and later than the row's last change.
func (s *Store) lock(ctx context.Context, tx *sqlx.Tx, cmd lifecycle.Command) (lifecycle.Run, time.Time, error) {
	var got struct {
		row
		Now time.Time `db:"now"`
	}
	var organization, project *int64
	if cmd.Tenant != nil {
		organization, project = &cmd.Tenant.OrganizationID, &cmd.Tenant.ProjectID
	}
	err := s.oneIn(ctx, tx, &got, selectLocked[cmd.Run.Kind], cmd.Run.ID, organization, project)
	if errors.Is(err, sql.ErrNoRows) {
		return lifecycle.Run{}, got.Now, lifecycle.ErrNotFound
	}
	if err != nil {
		return lifecycle.Run{}, got.Now, failed(ctx, "lock the run", err)
	}
	run, err := got.run(cmd.Run.Kind)
	return run, got.Now.UTC(), err
}

// write stores a decision about run. The guard of an applied step stands in the UPDATE's WHERE, lock or no lock.
func (s *Store) write(ctx context.Context, tx *sqlx.Tx, run lifecycle.Run, d lifecycle.Decision) error {
	query, args := storeLate, lineValues(*d.Event)
	if d.Outcome == lifecycle.Applied {
		query = storeStep[run.Kind]
		args = append(args, stepValues(run, d)...)
	}
	var seq int
	err := s.oneIn(ctx, tx, &seq, query, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("the row of run %s changed under its lock", run.ID)
	}
	return err
}

func lineValues(e lifecycle.Event) []any {
	return []any{e.Run.Kind, e.Run.ID, e.What, e.Outcome, e.By.Voice, e.By.Name, e.From, e.To, e.Attempt, e.Version, e.At,
		eventData(e.Data), orNull(e.Traceparent)}
}

func stepValues(run lifecycle.Run, d lifecycle.Decision) []any {
	was, next := stateCodes[run.Kind][run.State], stateCodes[run.Kind][d.Next.State]
	n := d.Next
	shared := []any{run.Attempt, was.status, next.status, n.Attempt, n.FlagCount, n.ResultURL, n.ErrorMessage, n.MaterializedAt,
		n.UpdatedAt, n.UpdatedBy, n.DeletedAt, n.DeletedBy, orNull(d.Job)}
	if run.Kind == lifecycle.Code2WF {
		return shared
	}
	var score, feedback *string
	if n.Score != nil {
		score = new(n.Score.String())
	}
	if n.Feedback != nil {
		feedback = new(feedbackCodes[*n.Feedback])
	}
	return append(shared, orNull(was.phase), orNull(next.phase), score, n.ScoreVersion, feedback)
}

// The casts tell PostgreSQL a parameter's type where it meets it first; later it could only guess.
const nextLine = `
	INSERT INTO run_event (kind, run_id, seq, what, outcome, actor_kind, actor, from_state, to_state, attempt, version, at, data, traceparent)
	SELECT $1::text, $2::text, (SELECT coalesce(max(seq), 0) + 1 FROM run_event WHERE kind = $1 AND run_id = $2),
		$3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13`

const storeLate = nextLine + ` RETURNING seq`

var selectLocked = map[lifecycle.Kind]string{
	lifecycle.WF2Des:  lockOf(lifecycle.WF2Des),
	lifecycle.Code2WF: lockOf(lifecycle.Code2WF),
}

// lockOf reads a run, deleted or not, within the caller's tenant (none given: any), for update.
func lockOf(kind lifecycle.Kind) string {
	return `SELECT ` + columns[kind] + `, greatest(clock_timestamp(), updated_at + interval '1 microsecond') AS now
FROM ` + string(kind) + ` WHERE id = $1 AND ($2::bigint IS NULL OR organization_id = $2 AND project_id = $3) FOR UPDATE`
}

var storeStep = map[lifecycle.Kind]string{
	lifecycle.WF2Des: stepOf(lifecycle.WF2Des, `, phase = $28, score = $29, score_version = $30, feedback_status = $31`,
		` AND phase IS NOT DISTINCT FROM $27`),
	lifecycle.Code2WF: stepOf(lifecycle.Code2WF, ``, ``),
}

// stepOf is one applied step: the guarded row, its timeline line, the job if there is one, and the public event.
func stepOf(kind lifecycle.Kind, alsoSet, alsoWhere string) string {
	return `
WITH moved AS (
	UPDATE ` + string(kind) + ` SET status = $16, attempt = $17, flag_count = $18, result_url = $19, error_message = $20,
		materialized_at = $21, updated_at = $22, updated_by = $23, deleted_at = $24, deleted_by = $25` + alsoSet + `
	WHERE id = $2 AND attempt = $14 AND status = $15` + alsoWhere + `
	RETURNING id
), line AS (` + nextLine + ` FROM moved RETURNING seq
), told AS (
	INSERT INTO outbox (destination, kind, run_id, attempt, stage, seq, traceparent)
	SELECT destination, $1, $2, $17, stage, message.seq, $13
	FROM line, LATERAL (VALUES ('jobs', $26, NULL), ('events', NULL, line.seq)) AS message (destination, stage, seq)
	WHERE destination = 'events' OR stage IS NOT NULL
)
SELECT seq FROM line`
}
