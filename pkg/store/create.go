package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/lib/pq"
)

// Creation asks for a new run. Run holds the id (a fresh UUIDv7), the tenant and what the caller gave, already valid.
// It is a plain value, like a Command.
type Creation struct {
	Run         lifecycle.Run
	By          lifecycle.Actor
	Traceparent string
}

// Create stores a new run with its first timeline line, its job and its public event, in one statement, which it may share with
// others that come at the same time.
//
// Errors: lifecycle.ErrNotFound (no such project in this organization), lifecycle.ErrUnknownUser, *lifecycle.OpenRunError (the
// node has an open run of the same edge; seed: wf2des_open_generation_uq), *lifecycle.InvalidError (the page import is not a
// completed one of this project), lifecycle.ErrUnavailable (nothing stored), lifecycle.ErrOutcomeUnknown.
func (s *Store) Create(ctx context.Context, c Creation) (lifecycle.Run, error) {
	return s.unlessInTheWay(ctx, c.Run, func() (lifecycle.Run, error) {
		run, err := s.creates[c.Run.Kind].do(ctx, c)
		if alreadyStored(err, c.Run.Kind) {
			return s.RunOfAnyTenant(ctx, c.Run.Ref)
		}
		return run, err
	})
}

// unlessInTheWay inserts draft, and where an open run stands in the way finds out which. That run may end between the two looks; then
// there is room and the insert is tried again.
func (s *Store) unlessInTheWay(ctx context.Context, draft lifecycle.Run, insert func() (lifecycle.Run, error)) (lifecycle.Run, error) {
	for range 16 {
		run, err := insert()
		if !errors.Is(err, errInTheWay) {
			return run, err
		}
		standing, err := s.openRun(ctx, draft)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
			continue
		case err != nil:
			return lifecycle.Run{}, err
		case standing.ID == draft.ID: // see alreadyStored; the open-run key is looked at before the primary key
			return standing, nil
		}
		return lifecycle.Run{}, &lifecycle.OpenRunError{Existing: standing}
	}
	return lifecycle.Run{}, fmt.Errorf("store: create: runs of this node come and go too quickly: %w", lifecycle.ErrUnavailable)
}

// errInTheWay: an open run stood in the way when the insert looked.
var errInTheWay = errors.New("an open run stands in the way")

// insert stores a batch of new runs of one kind.
func (s *Store) insert(ctx context.Context, kind lifecycle.Kind, batch []Creation) []answer[lifecycle.Run] {
	return apart(batch, func(batch []Creation) ([]answer[lifecycle.Run], error) { return s.insertAll(ctx, kind, batch) })
}

// inserted is what the statement answers for each run: which of the conditions held, and the time if the row was stored.
type inserted struct {
	Project bool       `db:"project"`
	Caller  bool       `db:"caller"`
	Source  bool       `db:"source"`
	Now     *time.Time `db:"created_at"`
	born
}

func (s *Store) insertAll(ctx context.Context, kind lifecycle.Kind, batch []Creation) ([]answer[lifecycle.Run], error) {
	began, decisions, rows := time.Now(), make([]lifecycle.Decision, len(batch)), make([]newRow, len(batch))
	for i, c := range batch {
		decisions[i] = lifecycle.Begin(c.Run, c.By, c.Traceparent)
		rows[i] = s.newRowOf(decisions[i], i)
	}
	var got []inserted
	if err := s.send(ctx, &got, kind, rows); err != nil {
		return everyone[lifecycle.Run](batch, err)
	}
	answers := make([]answer[lifecycle.Run], len(batch))
	for i := range batch {
		if answers[i].err = got[i].stamp(&decisions[i]); answers[i].err == nil {
			answers[i].value = decisions[i].Next
			s.handOver(began, decisions[i], got[i].born)
		}
	}
	return answers, nil
}

// stamp fills in what the store gives to a new run: its times, and its first line's place.
func (got inserted) stamp(d *lifecycle.Decision) error {
	switch {
	case !got.Project:
		return fmt.Errorf("store: create: project: %w", lifecycle.ErrNotFound)
	case !got.Caller:
		return fmt.Errorf("store: create: %w", lifecycle.ErrUnknownUser)
	case !got.Source:
		return &lifecycle.InvalidError{Field: "/pageImportId", Reason: "there is no completed page import with this id in the project"}
	case got.Now == nil:
		return errInTheWay
	}
	now := got.Now.UTC()
	d.Next.CreatedAt, d.Next.UpdatedAt = now, now
	d.Event.Seq, d.Event.At, d.Event.Version = 1, now, now
	return nil
}

// send runs the inserting statement, which commits by itself, and says truthfully what its error leaves behind.
func (s *Store) send(ctx context.Context, got *[]inserted, kind lifecycle.Kind, rows []newRow) error {
	query, args, err := inserting(kind, rows)
	if err != nil {
		return fmt.Errorf("store: create: %w", err)
	}
	sent := &witness{value: args[0]}
	args[0] = sent
	err = s.many(ctx, got, query, args...)
	switch {
	case err == nil && len(*got) != len(rows):
		return fmt.Errorf("store: create: %d answers for %d runs", len(*got), len(rows))
	case sent.seen == 0: // no connection to be had: nothing has left this process
		return failed(ctx, "create", err)
	case sent.seen == 1:
		return uncertain(ctx, "create", err)
	}
	return unknown("create", err)
}

// witness is a parameter that counts how often the driver took it to send it. When a connection breaks under a statement
// database/sql silently sends it again over another one, and shows only what became of the last try.
type witness struct {
	value any
	seen  int
}

// Value implements driver.Valuer.
func (w *witness) Value() (driver.Value, error) {
	w.seen++
	return w.value, nil
}

// alreadyStored recognises that this very run is there: its id was made for it alone, so an earlier try has arrived.
func alreadyStored(err error, kind lifecycle.Kind) bool {
	refused, ok := errors.AsType[*pq.Error](err)
	return ok && refused.Constraint == string(kind)+"_pkey"
}

// openRun reads the run that holds the open-run key of draft.
func (s *Store) openRun(ctx context.Context, draft lifecycle.Run) (lifecycle.Run, error) {
	var r row
	err := s.one(ctx, &r, selectOpen, draft.ProjectID, draft.FigmaFileKey, draft.WFNodeID, edgeCodes[draft.Edge])
	if errors.Is(err, sql.ErrNoRows) {
		return lifecycle.Run{}, lifecycle.ErrNotFound
	}
	if err != nil {
		return lifecycle.Run{}, failed(ctx, "read the open run", err)
	}
	return r.run(lifecycle.WF2Des)
}

var selectOpen = `SELECT ` + columns[lifecycle.WF2Des] + ` FROM wf2des
WHERE project_id = $1 AND figma_file_key = $2 AND wf_node_id = $3 AND edge = $4 AND status = '0'`
