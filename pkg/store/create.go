package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json/v2"
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
}

func (s *Store) insertAll(ctx context.Context, kind lifecycle.Kind, batch []Creation) ([]answer[lifecycle.Run], error) {
	runs, rows := make([]lifecycle.Run, len(batch)), make([]newRow, len(batch))
	for i, c := range batch {
		d := lifecycle.Begin(c.Run, c.By, c.Traceparent)
		runs[i], rows[i] = d.Next, newRowOf(d, i)
	}
	var got []inserted
	if err := s.send(ctx, &got, insertNew[kind], rows); err != nil {
		return everyone[lifecycle.Run](batch, err)
	}
	answers := make([]answer[lifecycle.Run], len(batch))
	for i := range batch {
		answers[i] = got[i].answer(runs[i])
	}
	return answers, nil
}

func (got inserted) answer(run lifecycle.Run) (a answer[lifecycle.Run]) {
	switch {
	case !got.Project:
		a.err = fmt.Errorf("store: create: project: %w", lifecycle.ErrNotFound)
	case !got.Caller:
		a.err = fmt.Errorf("store: create: %w", lifecycle.ErrUnknownUser)
	case !got.Source:
		a.err = &lifecycle.InvalidError{Field: "/pageImportId", Reason: "there is no completed page import with this id in the project"}
	case got.Now == nil:
		a.err = errInTheWay
	default:
		run.CreatedAt, run.UpdatedAt = got.Now.UTC(), got.Now.UTC()
		a.value = run
	}
	return a
}

// send runs the inserting statement, which commits by itself, and says truthfully what its error leaves behind.
func (s *Store) send(ctx context.Context, got *[]inserted, query string, rows []newRow) error {
	body, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("store: create: %w", err)
	}
	sent := &witness{value: string(body)}
	err = s.many(ctx, got, query, sent)
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

// newRow is a new run on its way into the statement; its members are called like the columns.
type newRow struct {
	N               int             `json:"n"` // its place in the batch
	ID              string          `json:"id"`
	OrganizationID  int64           `json:"organization_id"`
	ProjectID       int64           `json:"project_id"`
	FigmaFileKey    string          `json:"figma_file_key"`
	ScreenID        string          `json:"screen_id"`
	PlacementTarget *string         `json:"placement_target"`
	Status          string          `json:"status"`
	Attempt         int             `json:"attempt"`
	CreatedBy       string          `json:"created_by"`
	WFNodeID        string          `json:"wf_node_id,omitzero"`
	Edge            string          `json:"edge,omitzero"`
	Prompt          *string         `json:"prompt,omitzero"`
	AutoConfirm     string          `json:"auto_confirm,omitzero"`
	TriggerSurface  string          `json:"trigger_surface,omitzero"`
	Phase           string          `json:"phase,omitzero"`
	PageImportID    string          `json:"page_import_id,omitzero"`
	Voice           lifecycle.Voice `json:"voice"`
	What            lifecycle.What  `json:"what"`
	State           lifecycle.State `json:"state"`
	Stage           lifecycle.Stage `json:"stage"`
	Work            string          `json:"work"`
	Traceparent     *string         `json:"traceparent"`
}

func newRowOf(d lifecycle.Decision, n int) newRow {
	r := d.Next
	c := stateCodes[r.Kind][r.State]
	row := newRow{
		N: n, ID: r.ID, OrganizationID: r.OrganizationID, ProjectID: r.ProjectID, FigmaFileKey: r.FigmaFileKey, ScreenID: r.ScreenID,
		PlacementTarget: r.PlacementTarget, Status: c.status, Attempt: r.Attempt, CreatedBy: r.CreatedBy, Phase: c.phase,
		Voice: d.Event.By.Voice, What: d.Event.What, State: r.State, Stage: d.Job, Work: r.Work(), Traceparent: orNull(d.Event.Traceparent),
		PageImportID: r.PageImportID,
	}
	if r.Kind == lifecycle.WF2Des {
		row.WFNodeID, row.Edge, row.Prompt = r.WFNodeID, edgeCodes[r.Edge], r.Prompt
		row.AutoConfirm, row.TriggerSurface = confirmCodes[r.AutoConfirm], surfaceCodes[r.TriggerSurface]
	}
	return row
}

// The rows, their first timeline lines and their outbox entries are one statement: they stand or fall together, in one round trip.
// "asked" asks the platform's tables, row by row: of an EXISTS PostgreSQL would make a hash of the whole table. A run whose conditions fail
// is not stored, and the answer names the condition. Nodes are taken
// in one order by everybody, so that two batches never wait for each other; of two runs for one node the one that came first gets it.
var insertNew = map[lifecycle.Kind]string{
	lifecycle.WF2Des: `
WITH asked AS MATERIALIZED (
	SELECT *, clock_timestamp() AS now, true AS source,
		coalesce((SELECT true FROM project WHERE project.id = new.project_id AND project.organization_id = new.organization_id), false) AS project,
		coalesce((SELECT true FROM "user" WHERE cognito_sub = new.created_by), false) AS caller
	FROM json_to_recordset($1::json) AS new (` + newColumns + `, wf_node_id text, edge wf2des_edge, prompt text,
		auto_confirm wf2des_auto_confirm, trigger_surface wf2des_trigger_surface, phase wf2des_phase)
), made AS (
	INSERT INTO wf2des (id, organization_id, project_id, figma_file_key, screen_id, placement_target, status, attempt, created_by,
		updated_by, wf_node_id, edge, prompt, auto_confirm, trigger_surface, phase, created_at, updated_at)
	SELECT id, organization_id, project_id, figma_file_key, screen_id, placement_target, status, attempt, created_by,
		created_by, wf_node_id, edge, prompt, auto_confirm, trigger_surface, phase, now, now
	FROM asked WHERE project AND caller ORDER BY project_id, figma_file_key, wf_node_id, edge, n
	ON CONFLICT (project_id, figma_file_key, wf_node_id, edge) WHERE status = '0' DO NOTHING
	RETURNING id, created_at
)` + firstWords(lifecycle.WF2Des),

	lifecycle.Code2WF: `
WITH asked AS MATERIALIZED (
	SELECT *, clock_timestamp() AS now,
		coalesce((SELECT true FROM project WHERE project.id = new.project_id AND project.organization_id = new.organization_id), false) AS project,
		coalesce((SELECT true FROM "user" WHERE cognito_sub = new.created_by), false) AS caller,
		coalesce((SELECT true FROM page_import p WHERE p.id = new.page_import_id AND p.organization_id = new.organization_id
			AND p.project_id = new.project_id AND p.status = '1' AND p.deleted_at IS NULL), false) AS source
	FROM json_to_recordset($1::json) AS new (` + newColumns + `, page_import_id text)
), made AS (
	INSERT INTO code2wf (id, organization_id, project_id, figma_file_key, screen_id, placement_target, status, attempt, created_by,
		updated_by, page_import_id, created_at, updated_at)
	SELECT id, organization_id, project_id, figma_file_key, screen_id, placement_target, status, attempt, created_by,
		created_by, page_import_id, now, now
	FROM asked WHERE project AND caller AND source ORDER BY n
	RETURNING id, created_at
)` + firstWords(lifecycle.Code2WF),
}

const newColumns = `n integer, id text, organization_id bigint, project_id bigint, figma_file_key text, screen_id text,
		placement_target text, status wf2des_status, attempt integer, created_by text, voice text, what text, state text, stage text,
		work text, traceparent text`

// firstWords is the rest of the insert: timeline, job and public event.
func firstWords(kind lifecycle.Kind) string {
	return fmt.Sprintf(`, line AS (
	INSERT INTO run_event (kind, run_id, seq, what, outcome, actor_kind, actor, from_state, to_state, attempt, version, at, traceparent)
	SELECT '%[1]s', id, 1, what, 'applied', voice, created_by, NULL, state, attempt, created_at, created_at, traceparent
	FROM made JOIN asked USING (id)
), told AS (
	INSERT INTO outbox (destination, work, kind, run_id, attempt, stage, seq, traceparent)
	SELECT destination, message.work, '%[1]s', id, attempt, message.stage, seq, traceparent
	FROM made JOIN asked USING (id), LATERAL (VALUES ('jobs', asked.work, asked.stage, NULL), ('events', '', NULL, 1))
		AS message (destination, work, stage, seq)
	ORDER BY n
)
SELECT project, caller, source, created_at FROM asked LEFT JOIN made USING (id) ORDER BY n`, kind)
}
