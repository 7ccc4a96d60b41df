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

// Create stores a new run with its first timeline line, its job and its public event, in one statement.
//
// Errors: lifecycle.ErrNotFound (no such project in this organization), lifecycle.ErrUnknownUser, *lifecycle.OpenRunError (the
// node has an open run of the same edge; seed: wf2des_open_generation_uq), *lifecycle.InvalidError (the page import is not a
// completed one of this project), lifecycle.ErrUnavailable (nothing stored), lifecycle.ErrOutcomeUnknown.
func (s *Store) Create(ctx context.Context, c Creation) (lifecycle.Run, error) {
	for range 16 { // the run in the way may end between our two looks; then there is room and we ask again
		run, stored, err := s.insert(ctx, c)
		if err != nil || stored {
			return run, err
		}
		standing, err := s.openRun(ctx, run)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
			continue
		case err != nil:
			return lifecycle.Run{}, err
		case standing.ID == run.ID: // see alreadyStored; the open-run key is looked at before the primary key
			return standing, nil
		}
		return lifecycle.Run{}, &lifecycle.OpenRunError{Existing: standing}
	}
	return lifecycle.Run{}, fmt.Errorf("store: create: runs of this node come and go too quickly: %w", lifecycle.ErrUnavailable)
}

// inserted is what the one statement answers: which of the conditions held, and the time if the row was stored.
type inserted struct {
	Project bool       `db:"project"`
	Caller  bool       `db:"caller"`
	Source  bool       `db:"source"`
	Now     *time.Time `db:"created_at"`
}

// insert reports false without an error when an open run stands in the way.
func (s *Store) insert(ctx context.Context, c Creation) (lifecycle.Run, bool, error) {
	d := lifecycle.Begin(c.Run, c.By, c.Traceparent)
	run := d.Next
	query, args := insertWF2Des, wf2desValues(run)
	if run.Kind == lifecycle.Code2WF {
		query, args = insertCode2WF, code2wfValues(run)
	}
	got, err := s.send(ctx, query, append(args, c.By.Voice, d.Event.What, run.State, d.Job, orNull(c.Traceparent)))
	switch {
	case alreadyStored(err, run.Kind):
		run, err = s.RunOfAnyTenant(ctx, run.Ref)
		return run, err == nil, err
	case err != nil:
		return run, false, err
	case !got.Project:
		return run, false, fmt.Errorf("store: create: project: %w", lifecycle.ErrNotFound)
	case !got.Caller:
		return run, false, fmt.Errorf("store: create: %w", lifecycle.ErrUnknownUser)
	case !got.Source:
		return run, false, &lifecycle.InvalidError{Field: "/pageImportId", Reason: "there is no completed page import with this id in the project"}
	case got.Now == nil:
		return run, false, nil
	}
	run.CreatedAt, run.UpdatedAt = got.Now.UTC(), got.Now.UTC()
	return run, true, nil
}

// send runs the inserting statement, which commits by itself, and says truthfully what its error leaves behind.
func (s *Store) send(ctx context.Context, query string, args []any) (got inserted, err error) {
	first := &witness{value: args[0]}
	args[0] = first
	err = s.one(ctx, &got, query, args...)
	switch first.seen {
	case 0: // no connection to be had: nothing has left this process
		return got, failed(ctx, "create", err)
	case 1:
		return got, uncertain(ctx, "create", err)
	}
	return got, unknown("create", err)
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

func sharedValues(r lifecycle.Run) []any {
	c := stateCodes[r.Kind][r.State]
	return []any{r.ID, r.OrganizationID, r.ProjectID, r.FigmaFileKey, r.ScreenID, r.PlacementTarget, c.status, r.Attempt, r.CreatedBy}
}

func wf2desValues(r lifecycle.Run) []any {
	return append(sharedValues(r), r.WFNodeID, edgeCodes[r.Edge], r.Prompt, confirmCodes[r.AutoConfirm],
		surfaceCodes[r.TriggerSurface], stateCodes[r.Kind][r.State].phase)
}

func code2wfValues(r lifecycle.Run) []any { return append(sharedValues(r), r.PageImportID) }

// The row, its first timeline line and its outbox entries are one statement: they stand or fall together, in one round trip.
// "scope" asks the platform's tables; a condition that fails stores nothing and is told by its name.
var (
	insertWF2Des = `
WITH scope AS (
	SELECT clock_timestamp() AS now, true AS source,
		EXISTS (SELECT FROM project WHERE id = $3 AND organization_id = $2) AS project,
		EXISTS (SELECT FROM "user" WHERE cognito_sub = $9) AS caller
), made AS (
	INSERT INTO wf2des (id, organization_id, project_id, figma_file_key, screen_id, placement_target, status, attempt, created_by,
		updated_by, wf_node_id, edge, prompt, auto_confirm, trigger_surface, phase, created_at, updated_at)
	SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10, $11, $12, $13, $14, $15, now, now
	FROM scope WHERE project AND caller
	ON CONFLICT (project_id, figma_file_key, wf_node_id, edge) WHERE status = '0' DO NOTHING
	RETURNING created_at
)` + firstWords(lifecycle.WF2Des, 16)

	insertCode2WF = `
WITH scope AS (
	SELECT clock_timestamp() AS now,
		EXISTS (SELECT FROM project WHERE id = $3 AND organization_id = $2) AS project,
		EXISTS (SELECT FROM "user" WHERE cognito_sub = $9) AS caller,
		EXISTS (SELECT FROM page_import WHERE id = $10 AND organization_id = $2 AND project_id = $3
			AND status = '1' AND deleted_at IS NULL) AS source
), made AS (
	INSERT INTO code2wf (id, organization_id, project_id, figma_file_key, screen_id, placement_target, status, attempt, created_by,
		updated_by, page_import_id, created_at, updated_at)
	SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10, now, now
	FROM scope WHERE project AND caller AND source
	RETURNING created_at
)` + firstWords(lifecycle.Code2WF, 11)
)

// firstWords is the rest of the insert: timeline, job and public event. Its five parameters begin at $first.
func firstWords(kind lifecycle.Kind, first int) string {
	return fmt.Sprintf(`, line AS (
	INSERT INTO run_event (kind, run_id, seq, what, outcome, actor_kind, actor, from_state, to_state, attempt, version, at, traceparent)
	SELECT '%[1]s', $1, 1, $%[3]d, 'applied', $%[2]d, $9, NULL, $%[4]d, $8, created_at, created_at, $%[6]d FROM made
), told AS (
	INSERT INTO outbox (destination, kind, run_id, attempt, stage, seq, traceparent)
	SELECT destination, '%[1]s', $1, $8, stage, seq, $%[6]d
	FROM made, (VALUES ('jobs', $%[5]d, NULL), ('events', NULL, 1)) AS message (destination, stage, seq)
)
SELECT project, caller, source, created_at FROM scope LEFT JOIN made ON true`, kind, first, first+1, first+2, first+3, first+4)
}
