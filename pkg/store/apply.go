package store

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// Applied is what became of a command: the outcome, and the run as it stands afterwards.
type Applied struct {
	Outcome lifecycle.Outcome
	Run     lifecycle.Run
}

// Apply carries out cmd: it locks the run, lets lifecycle.Decide say what the command means, and stores row, timeline and outbox
// in the same transaction, which it may share with commands about other runs. A worker's word that came too late is stored in the
// timeline only; a person's repeated decision stores nothing.
//
// Errors: lifecycle.ErrNotFound, *lifecycle.RefusedError and *lifecycle.InvalidError (nothing changed), lifecycle.ErrUnavailable (nothing
// changed, worth another try), lifecycle.ErrOutcomeUnknown (the COMMIT broke; asking again converges).
func (s *Store) Apply(ctx context.Context, cmd lifecycle.Command) (Applied, error) {
	return s.applies[cmd.Run.Kind].do(ctx, cmd)
}

// apply carries out a batch of commands about different runs of one kind.
func (s *Store) apply(ctx context.Context, kind lifecycle.Kind, batch []lifecycle.Command) []answer[Applied] {
	return apart(batch, func(batch []lifecycle.Command) ([]answer[Applied], error) { return s.applyAll(ctx, kind, batch) })
}

// applyAll is the one transaction: lock the runs, decide in the order of arrival, write what was decided, commit. An error means that
// none of it was stored, or that nobody knows; commands that had nothing to store are answered all the same.
func (s *Store) applyAll(ctx context.Context, kind lifecycle.Kind, batch []lifecycle.Command) ([]answer[Applied], error) {
	if err := s.prepare(ctx, selectLocked[kind], storeSteps[kind], selectPulses); err != nil {
		return everyone[Applied](batch, failed(ctx, "apply", err))
	}
	tx, err := s.db.BeginTxx(ctx, nil)
	if err != nil {
		return everyone[Applied](batch, failed(ctx, "apply", err))
	}
	defer tx.Rollback() // after a commit this does nothing

	runs, err := s.lock(ctx, tx, kind, batch)
	if err != nil {
		return everyone[Applied](batch, failed(ctx, "lock runs", err))
	}
	told, err := s.heard(ctx, tx, kind, batch)
	if err != nil {
		return everyone[Applied](batch, failed(ctx, "read pulses", err))
	}
	answers, steps := decide(runs, told)
	if len(steps) == 0 {
		return answers, nil
	}
	began := time.Now()
	wrote, err := s.write(ctx, tx, kind, steps)
	if err = failed(ctx, "apply", err); err == nil {
		err = uncertain(ctx, "apply", tx.Commit())
	}
	for i, step := range steps {
		if err != nil {
			answers[step.n] = answer[Applied]{err: err}
		} else if step.Outcome == lifecycle.Applied {
			step.Event.Seq = wrote[i].Seq
			s.handOver(began, step.Decision, wrote[i].born)
		}
	}
	return answers, err
}

// locked is a run that nobody else can change until the transaction ends, and a time for what is decided about it: PostgreSQL's, and
// later than the row's last change.
type locked struct {
	run lifecycle.Run
	now time.Time
}

// lock reads the batch's runs, deleted or not, in the order of their ids, so that two batches never wait for each other.
func (s *Store) lock(ctx context.Context, tx *sqlx.Tx, kind lifecycle.Kind, batch []lifecycle.Command) (map[string]locked, error) {
	ids := make([]string, len(batch))
	for i, cmd := range batch {
		ids[i] = cmd.Run.ID
	}
	var rows []struct {
		row
		Now time.Time `db:"now"`
	}
	if err := s.manyIn(ctx, tx, &rows, selectLocked[kind], pq.Array(ids)); err != nil {
		return nil, err
	}
	runs := make(map[string]locked, len(rows))
	for _, r := range rows {
		run, err := r.run(kind)
		if err != nil {
			return nil, err
		}
		runs[run.ID] = locked{run, r.Now.UTC()}
	}
	return runs, nil
}

// step is a decision that leaves something to store.
type step struct {
	n   int // the command's place in the batch
	was lifecycle.Run
	lifecycle.Decision
}

// decide answers each command, and collects what is to be stored. What lies outside a command's tenant does not exist.
func decide(runs map[string]locked, batch []lifecycle.Command) (answers []answer[Applied], steps []step) {
	answers = make([]answer[Applied], len(batch))
	for i, cmd := range batch {
		l, ok := runs[cmd.Run.ID]
		if !ok || cmd.Tenant != nil && *cmd.Tenant != l.run.Tenant {
			answers[i].err = lifecycle.ErrNotFound
			continue
		}
		d, err := lifecycle.Decide(l.run, cmd, l.now)
		answers[i] = answer[Applied]{Applied{d.Outcome, d.Next}, err}
		if err == nil && d.Event != nil {
			steps = append(steps, step{i, l.run, d})
		}
	}
	return answers, steps
}

// written is what became of a step: its line's place in the timeline, and its entries in the outbox.
type written struct {
	Seq int `db:"seq"`
	born
}

// write stores the steps, and tells in their order what became of them. The guard of an applied one stands in the UPDATE's WHERE, lock or
// no lock.
func (s *Store) write(ctx context.Context, tx *sqlx.Tx, kind lifecycle.Kind, steps []step) ([]written, error) {
	rows, ids := make([]stepRow, len(steps)), make([]string, len(steps))
	for i, step := range steps {
		effect := s.effects.of(step.Next, *step.Event)
		rows[i], ids[i] = step.row(), step.was.ID
		rows[i].Effect, rows[i].EffectTerm, rows[i].EventTerm = orNull(effect), s.effectTerm(effect), s.fresh.events.term()
	}
	body, err := json.Marshal(rows)
	if err != nil {
		return nil, err
	}
	var stored []written
	if err := s.manyIn(ctx, tx, &stored, storeSteps[kind], string(body), pq.Array(ids)); err != nil {
		return nil, err
	}
	if len(stored) != len(steps) {
		return nil, fmt.Errorf("of %d steps %d were stored: a row changed under its lock", len(steps), len(stored))
	}
	return stored, nil
}

// stepRow is a step on its way into the statement; its members are called like the columns.
type stepRow struct {
	N          int     `json:"n"` // its place in the batch
	ID         string  `json:"id"`
	Applied    bool    `json:"applied"`
	WasAttempt int     `json:"was_attempt"`
	WasStatus  string  `json:"was_status"`
	WasPhase   *string `json:"was_phase,omitzero"`

	Status         string     `json:"status"`
	Phase          *string    `json:"phase,omitzero"`
	Attempt        int        `json:"attempt"`
	FlagCount      *int       `json:"flag_count,omitzero"`
	ResultURL      *string    `json:"result_url,omitzero"`
	ErrorMessage   *string    `json:"error_message,omitzero"`
	MaterializedAt *time.Time `json:"materialized_at,omitzero"`
	FeedbackStatus *string    `json:"feedback_status,omitzero"`
	Score          *string    `json:"score,omitzero"`
	ScoreVersion   *string    `json:"score_version,omitzero"`
	UpdatedAt      time.Time  `json:"updated_at"`
	UpdatedBy      string     `json:"updated_by"`
	DeletedAt      *time.Time `json:"deleted_at,omitzero"`
	DeletedBy      *string    `json:"deleted_by,omitzero"`

	What        lifecycle.What    `json:"what"`
	Outcome     lifecycle.Outcome `json:"outcome"`
	Voice       lifecycle.Voice   `json:"voice"`
	Actor       string            `json:"actor"`
	FromState   lifecycle.State   `json:"from_state"`
	ToState     lifecycle.State   `json:"to_state"`
	Said        int               `json:"said"` // the attempt that the command spoke of
	At          time.Time         `json:"at"`
	Data        data              `json:"data"`
	Stage       *lifecycle.Stage  `json:"stage,omitzero"`
	Work        string            `json:"work"`
	Effect      *string           `json:"effect,omitzero"`
	Traceparent *string           `json:"traceparent,omitzero"`
	EventTerm   int64             `json:"event_term"` // see handover
	EffectTerm  int64             `json:"effect_term"`
}

func (d step) row() stepRow {
	was, next := stateCodes[d.was.Kind][d.was.State], stateCodes[d.was.Kind][d.Next.State]
	r, e := d.Next, d.Event
	row := stepRow{
		N: d.n, ID: r.ID, Applied: d.Outcome == lifecycle.Applied,
		WasAttempt: d.was.Attempt, WasStatus: was.status, WasPhase: orNull(was.phase),
		Status: next.status, Phase: orNull(next.phase), Attempt: r.Attempt, FlagCount: r.FlagCount, ResultURL: r.ResultURL,
		ErrorMessage: r.ErrorMessage, MaterializedAt: r.MaterializedAt, ScoreVersion: r.ScoreVersion,
		UpdatedAt: r.UpdatedAt, UpdatedBy: r.UpdatedBy, DeletedAt: r.DeletedAt, DeletedBy: r.DeletedBy,
		What: e.What, Outcome: e.Outcome, Voice: e.By.Voice, Actor: e.By.Name, FromState: e.From, ToState: e.To, Said: e.Attempt,
		At: e.At, Data: data(e.Data), Stage: orNull(d.Job), Work: r.Work(), Traceparent: orNull(e.Traceparent),
	}
	if r.Score != nil {
		row.Score = new(r.Score.String())
	}
	if r.Feedback != nil {
		row.FeedbackStatus = new(feedbackCodes[*r.Feedback])
	}
	return row
}

var selectLocked = map[lifecycle.Kind]string{
	lifecycle.WF2Des:  lockOf(lifecycle.WF2Des),
	lifecycle.Code2WF: lockOf(lifecycle.Code2WF),
}

func lockOf(kind lifecycle.Kind) string {
	return `SELECT ` + columns[kind] + `, greatest(clock_timestamp(), updated_at + interval '1 microsecond') AS now
FROM ` + string(kind) + ` WHERE id = ANY($1) ORDER BY id FOR UPDATE`
}

var storeSteps = map[lifecycle.Kind]string{
	lifecycle.WF2Des: stepsOf(lifecycle.WF2Des,
		`, phase = step.phase, score = step.score, score_version = step.score_version, feedback_status = step.feedback_status`,
		` AND run.phase IS NOT DISTINCT FROM step.was_phase`),
	lifecycle.Code2WF: stepsOf(lifecycle.Code2WF, ``, ``),
}

// stepsOf stores steps: the guarded rows, a timeline line for each step whether it was applied or came too late, and for the applied
// ones the job and the effect if there is one, and the public event. It answers with a row for each line. The ids, which stand in the steps
// too, are given once more so that the rows are found by their index, whatever is guessed about the number of steps; and no index on the status offers
// itself, as it would where the tables were empty when PostgreSQL planned (hence IS NOT DISTINCT FROM). An entry is born under a
// lease only if nothing older of its run waits for the same destination, for a run's messages leave in order (asked as in claimDue).
func stepsOf(kind lifecycle.Kind, alsoSet, alsoWhere string) string {
	return fmt.Sprintf(`
WITH step AS MATERIALIZED (
	SELECT * FROM json_to_recordset($1::json) AS step (n integer, id text, applied boolean, was_attempt integer, was_status wf2des_status,
		was_phase wf2des_phase, status wf2des_status, phase wf2des_phase, attempt integer, flag_count integer, result_url text,
		error_message text, materialized_at timestamptz, feedback_status wf2des_feedback_status, score numeric, score_version text,
		updated_at timestamptz, updated_by text, deleted_at timestamptz, deleted_by text, what text, outcome text, voice text,
		actor text, from_state text, to_state text, said integer, at timestamptz, data jsonb, stage text, work text, effect text,
		traceparent text, event_term bigint, effect_term bigint)
), moved AS (
	UPDATE %[1]s run SET status = step.status, attempt = step.attempt, flag_count = step.flag_count, result_url = step.result_url,
		error_message = step.error_message, materialized_at = step.materialized_at, updated_at = step.updated_at,
		updated_by = step.updated_by, deleted_at = step.deleted_at, deleted_by = step.deleted_by%[2]s
	FROM step
	WHERE step.applied AND run.id = ANY($2) AND run.id = step.id AND run.attempt = step.was_attempt
		AND run.status IS NOT DISTINCT FROM step.was_status%[3]s
	RETURNING run.id
), line AS (
	INSERT INTO run_event (kind, run_id, seq, what, outcome, actor_kind, actor, from_state, to_state, attempt, version, at, data, traceparent)
	SELECT '%[1]s', id, (SELECT coalesce(max(seq), 0) + 1 FROM run_event WHERE kind = '%[1]s' AND run_id = step.id),
		what, outcome, voice, actor, from_state, to_state, said, updated_at, at, data, traceparent
	FROM step WHERE NOT applied OR id IN (SELECT id FROM moved)
	RETURNING run_id, seq
), told AS (
	INSERT INTO outbox (destination, work, kind, run_id, attempt, stage, seq, traceparent, due_at, tries)
	SELECT destination, message.work, '%[1]s', id, attempt, message.stage, message.seq, traceparent,
		clock_timestamp() + free.term * interval '1 millisecond', (free.term > 0)::integer
	FROM step JOIN line ON run_id = id,
		LATERAL (VALUES ('jobs', step.work, step.stage, NULL, 0), ('events', '', NULL, line.seq, event_term),
			(step.effect, '', NULL, line.seq, effect_term))
			AS message (destination, work, stage, seq, term),
		LATERAL (SELECT CASE WHEN message.term > 0 AND NOT EXISTS (
			SELECT FROM outbox older WHERE older.run_id = step.id AND older.settled_at IS NULL
				AND older.destination IS NOT DISTINCT FROM message.destination OFFSET 0) THEN message.term ELSE 0 END AS term) AS free
	WHERE applied AND destination IS NOT NULL AND (destination <> 'jobs' OR message.stage IS NOT NULL)
	ORDER BY n
	RETURNING id, run_id, destination, tries
)
SELECT line.seq, born.event, born.effect FROM step JOIN line ON line.run_id = step.id LEFT JOIN (
	SELECT run_id, `+bornOf("event", "destination = 'events'")+`, `+bornOf("effect", "destination NOT IN ('jobs', 'events')")+`
	FROM told GROUP BY run_id) AS born ON born.run_id = step.id
ORDER BY n`, kind, alsoSet, alsoWhere)
}
