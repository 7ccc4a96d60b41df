package store

import (
	"encoding/json/v2"
	"fmt"
	"reflect"
	"strings"

	"framerun.dev/pkg/lifecycle"
)

// inserting is the statement that stores new rows, and its arguments. One row comes as parameters of their own, which is quicker; many
// come as one JSON document.
func inserting(kind lifecycle.Kind, rows []newRow) (query string, args []any, err error) {
	if len(rows) == 1 {
		return insertOne[kind], rows[0].values(kind), nil
	}
	body, err := json.Marshal(rows)
	return insertMany[kind], []any{string(body)}, err
}

var insertOne, insertMany = inserts(parameters), inserts(recordset)

// inserts makes the statement of each kind out of where its rows come from.
func inserts(source func(columns string) string) map[lifecycle.Kind]string {
	return map[lifecycle.Kind]string{
		lifecycle.WF2Des:  insertFrom(lifecycle.WF2Des, source(newColumns[lifecycle.WF2Des])),
		lifecycle.Code2WF: insertFrom(lifecycle.Code2WF, source(newColumns[lifecycle.Code2WF])),
	}
}

func recordset(columns string) string { return `json_to_recordset($1::json) AS new (` + columns + `)` }

func parameters(columns string) string {
	var list []string
	for column := range strings.SplitSeq(columns, ",") {
		name, kind, _ := strings.Cut(strings.TrimSpace(column), " ")
		list = append(list, fmt.Sprintf("$%d::%s AS %s", len(list)+1, kind, name))
	}
	return `(SELECT ` + strings.Join(list, ", ") + `) AS new`
}

// values are the row's members in the order of newColumns.
func (r newRow) values(kind lifecycle.Kind) (values []any) {
	row := reflect.ValueOf(r)
	for _, member := range newMembers[kind] {
		switch v := row.Field(member); v.Kind() {
		case reflect.String: // lifecycle's words too
			values = append(values, v.String())
		case reflect.Int, reflect.Int64:
			values = append(values, v.Int())
		default:
			values = append(values, v.Interface())
		}
	}
	return values
}

// newMembers are the places of newRow's members that are called like newColumns.
var newMembers = map[lifecycle.Kind][]int{
	lifecycle.WF2Des: membersOf(newColumns[lifecycle.WF2Des]), lifecycle.Code2WF: membersOf(newColumns[lifecycle.Code2WF]),
}

func membersOf(columns string) (places []int) {
	row := reflect.TypeFor[newRow]()
	for column := range strings.SplitSeq(columns, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(column), " ")
		for i := range row.NumField() {
			if tag, _, _ := strings.Cut(row.Field(i).Tag.Get("json"), ","); tag == name {
				places = append(places, i)
			}
		}
	}
	return places
}

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
	JobTerm         int64           `json:"job_term"` // see handover
	EventTerm       int64           `json:"event_term"`
}

func (s *Store) newRowOf(d lifecycle.Decision, n int) newRow {
	r := d.Next
	c := stateCodes[r.Kind][r.State]
	row := newRow{
		N: n, ID: r.ID, OrganizationID: r.OrganizationID, ProjectID: r.ProjectID, FigmaFileKey: r.FigmaFileKey, ScreenID: r.ScreenID,
		PlacementTarget: r.PlacementTarget, Status: c.status, Attempt: r.Attempt, CreatedBy: r.CreatedBy, Phase: c.phase,
		Voice: d.Event.By.Voice, What: d.Event.What, State: r.State, Stage: d.Job, Work: r.Work(), Traceparent: orNull(d.Event.Traceparent),
		PageImportID: r.PageImportID, JobTerm: s.fresh.jobs[r.Work()].term(), EventTerm: s.fresh.events.term(),
	}
	if r.Kind == lifecycle.WF2Des {
		row.WFNodeID, row.Edge, row.Prompt = r.WFNodeID, edgeCodes[r.Edge], r.Prompt
		row.AutoConfirm, row.TriggerSurface = confirmCodes[r.AutoConfirm], surfaceCodes[r.TriggerSurface]
	}
	return row
}

// The rows, their first timeline lines and their outbox entries are one statement: they stand or fall together, in one round trip.
// "asked" asks the platform's tables, row by row: of an EXISTS PostgreSQL would make a hash of the whole table. A run whose conditions
// fail is not stored, and the answer names the condition. Nodes are taken in one order by everybody, so that two batches never wait for
// each other; of two runs for one node the one that came first gets it.
func insertFrom(kind lifecycle.Kind, source string) string {
	if kind == lifecycle.WF2Des {
		return `
WITH asked AS MATERIALIZED (
	SELECT *, clock_timestamp() AS now, true AS source,
		coalesce((SELECT true FROM project WHERE project.id = new.project_id AND project.organization_id = new.organization_id), false) AS project,
		coalesce((SELECT true FROM "user" WHERE cognito_sub = new.created_by), false) AS caller
	FROM ` + source + `
), made AS (
	INSERT INTO wf2des (id, organization_id, project_id, figma_file_key, screen_id, placement_target, status, attempt, created_by,
		updated_by, wf_node_id, edge, prompt, auto_confirm, trigger_surface, phase, created_at, updated_at)
	SELECT id, organization_id, project_id, figma_file_key, screen_id, placement_target, status, attempt, created_by,
		created_by, wf_node_id, edge, prompt, auto_confirm, trigger_surface, phase, now, now
	FROM asked WHERE project AND caller ORDER BY project_id, figma_file_key, wf_node_id, edge, n
	ON CONFLICT (project_id, figma_file_key, wf_node_id, edge) WHERE status = '0' DO NOTHING
	RETURNING id, created_at
)` + firstWords(kind)
	}
	return `
WITH asked AS MATERIALIZED (
	SELECT *, clock_timestamp() AS now,
		coalesce((SELECT true FROM project WHERE project.id = new.project_id AND project.organization_id = new.organization_id), false) AS project,
		coalesce((SELECT true FROM "user" WHERE cognito_sub = new.created_by), false) AS caller,
		coalesce((SELECT true FROM page_import p WHERE p.id = new.page_import_id AND p.organization_id = new.organization_id
			AND p.project_id = new.project_id AND p.status = '1' AND p.deleted_at IS NULL), false) AS source
	FROM ` + source + `
), made AS (
	INSERT INTO code2wf (id, organization_id, project_id, figma_file_key, screen_id, placement_target, status, attempt, created_by,
		updated_by, page_import_id, created_at, updated_at)
	SELECT id, organization_id, project_id, figma_file_key, screen_id, placement_target, status, attempt, created_by,
		created_by, page_import_id, now, now
	FROM asked WHERE project AND caller AND source ORDER BY n
	RETURNING id, created_at
)` + firstWords(kind)
}

// newColumns are the columns of new rows on their way into the statement; each is a member of newRow.
var newColumns = map[lifecycle.Kind]string{
	lifecycle.WF2Des: sharedNew + `, wf_node_id text, edge wf2des_edge, prompt text,
		auto_confirm wf2des_auto_confirm, trigger_surface wf2des_trigger_surface, phase wf2des_phase`,
	lifecycle.Code2WF: sharedNew + `, page_import_id text`,
}

const sharedNew = `n integer, id text, organization_id bigint, project_id bigint, figma_file_key text, screen_id text,
		placement_target text, status wf2des_status, attempt integer, created_by text, voice text, what text, state text, stage text,
		work text, traceparent text, job_term bigint, event_term bigint`

// firstWords is the rest of the insert: timeline, job and public event.
func firstWords(kind lifecycle.Kind) string {
	return fmt.Sprintf(`, line AS (
	INSERT INTO run_event (kind, run_id, seq, what, outcome, actor_kind, actor, from_state, to_state, attempt, version, at, traceparent)
	SELECT '%[1]s', id, 1, what, 'applied', voice, created_by, NULL, state, attempt, created_at, created_at, traceparent
	FROM made JOIN asked USING (id)
), told AS (
	INSERT INTO outbox (destination, work, kind, run_id, attempt, stage, seq, traceparent, due_at, tries)
	SELECT destination, message.work, '%[1]s', id, attempt, message.stage, seq, traceparent,
		clock_timestamp() + term * interval '1 millisecond', (term > 0)::integer
	FROM made JOIN asked USING (id),
		LATERAL (VALUES ('jobs', asked.work, asked.stage, NULL, asked.job_term), ('events', '', NULL, 1, asked.event_term))
		AS message (destination, work, stage, seq, term)
	ORDER BY n
	RETURNING id, run_id, destination, tries
)
SELECT project, caller, source, created_at, born.job, born.event FROM asked LEFT JOIN made USING (id) LEFT JOIN (
	SELECT run_id, `+bornOf("job", "destination = 'jobs'")+`, `+bornOf("event", "destination = 'events'")+`
	FROM told GROUP BY run_id) AS born ON born.run_id = made.id
ORDER BY n`, kind)
}

// bornOf names an entry, out of those that a statement has told, that was born under a lease.
func bornOf(name, which string) string {
	return `min(id) FILTER (WHERE tries > 0 AND ` + which + `) AS ` + name
}
