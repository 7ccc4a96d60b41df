package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"framerun.dev/pkg/lifecycle"
	"github.com/jmoiron/sqlx"
)

// Intervention is what an operator can do to an outbox entry.
type Intervention string

const (
	// RetryEntry gives an entry that was set aside back to the relays, due at once. It keeps its place in its run's order.
	RetryEntry Intervention = "retry"
	// SkipEntry lets an entry go: it will never be told.
	SkipEntry Intervention = "skip"
)

// EntryRefusedError says that the entry, or its run, does not allow the intervention. Nothing was changed.
type EntryRefusedError struct {
	Entry  Entry
	Reason string
}

func (e *EntryRefusedError) Error() string { return e.Reason }

// On decides whether the intervention is possible for an entry and its run as they are. Error: *EntryRefusedError.
func (i Intervention) On(e Entry, run lifecycle.Run) error {
	refuse := func(format string, args ...any) error { return &EntryRefusedError{e, fmt.Sprintf(format, args...)} }
	switch {
	case e.State == Skipped:
		return refuse("entry %d has been skipped already", e.ID)
	case i == SkipEntry:
		return nil
	case e.State == Pending:
		return refuse("entry %d is pending: the service that carries it tries it by itself, as often as it takes", e.ID)
	case e.Stage != lifecycle.NoJob && run.Ended():
		return refuse("the run of entry %d is %s, so nobody wants its job any more", e.ID, run.State)
	case e.Stage != lifecycle.NoJob && run.Attempt != e.Attempt:
		return refuse("entry %d is of attempt %d and the run is at attempt %d, so nobody wants this job any more", e.ID, e.Attempt, run.Attempt)
	}
	return nil
}

// Intervene carries an intervention out and writes it into the run's timeline, under the operator's name, in one transaction. The
// run's row is not touched. It returns the entry as it stands afterwards.
//
// Errors: ErrNoEntry (it may have been sent meanwhile), lifecycle.ErrNotFound (its run is gone), *EntryRefusedError,
// lifecycle.ErrUnavailable (nothing changed), lifecycle.ErrOutcomeUnknown.
func (s *Store) Intervene(ctx context.Context, i Intervention, id int64, by lifecycle.Actor) (Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	e, err := s.Entry(ctx, id)
	if err != nil {
		return e, err
	}
	if err := s.prepare(ctx, selectLocked[e.Run.Kind], lockEntry, interventions[i]); err != nil {
		return e, failed(ctx, "intervene", err)
	}
	tx, err := s.db.BeginTxx(ctx, nil)
	if err != nil {
		return e, failed(ctx, "intervene", err)
	}
	defer tx.Rollback() // after a commit this does nothing
	if e, err = s.interveneIn(ctx, tx, i, e, by); err != nil {
		return e, err
	}
	return e, uncertain(ctx, "intervene", tx.Commit())
}

// interveneIn takes the run's lock before the entry's, as everybody does who adds a line to the timeline.
func (s *Store) interveneIn(ctx context.Context, tx *sqlx.Tx, i Intervention, e Entry, by lifecycle.Actor) (Entry, error) {
	runs, err := s.lock(ctx, tx, e.Run.Kind, []lifecycle.Command{{Run: e.Run}})
	if err != nil {
		return e, failed(ctx, "lock the run of an entry", err)
	}
	l, ok := runs[e.Run.ID]
	if !ok {
		return e, fmt.Errorf("store: the run of outbox entry %d: %w", e.ID, lifecycle.ErrNotFound)
	}
	var r entryRow
	err = s.oneIn(ctx, tx, &r, lockEntry, e.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return e, ErrNoEntry
	}
	if err != nil {
		return e, failed(ctx, "lock an outbox entry", err)
	}
	e = r.entry()
	if err := i.On(e, l.run); err != nil {
		return e, err
	}
	err = s.oneIn(ctx, tx, &r, interventions[i], e.ID, by.Voice, by.Name, l.run.State, l.run.UpdatedAt, e.Says())
	return r.entry(), failed(ctx, "intervene", err)
}

const lockEntry = `SELECT ` + entryColumns + ` FROM outbox WHERE id = $1 FOR UPDATE`

var interventions = map[Intervention]string{
	// Tries stay: they are the fence between relays.
	RetryEntry: interventionOf(lifecycle.DeliveryRetried, `state = 'pending', settled_at = NULL, due_at = now()`, `state = 'set_aside'`),
	SkipEntry:  interventionOf(lifecycle.DeliverySkipped, `state = 'skipped', settled_at = now()`, `state <> 'skipped'`),
}

// interventionOf changes one entry where it still is as it was seen, and writes the line. It answers with the entry.
func interventionOf(what lifecycle.What, set, where string) string {
	return fmt.Sprintf(`
WITH entry AS (
	UPDATE outbox SET %[2]s WHERE id = $1 AND %[3]s RETURNING %[4]s
), line AS (
	INSERT INTO run_event (kind, run_id, seq, what, outcome, actor_kind, actor, from_state, to_state, attempt, version, at, data)
	SELECT kind, run_id, (SELECT coalesce(max(seq), 0) + 1 FROM run_event WHERE kind = entry.kind AND run_id = entry.run_id),
		'%[1]s', '%[5]s', $2, $3, $4, $4, attempt, $5, clock_timestamp(), jsonb_build_object('delivery', $6::text)
	FROM entry
)
SELECT %[4]s FROM entry`, what, set, where, entryColumns, lifecycle.Noted)
}
