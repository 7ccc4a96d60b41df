package designs

import (
	"time"

	"framerun.dev/pkg/lifecycle"
)

// This file is all that the suite knows of the platform's table: its columns, its codes and its key. The table in
// migrations/platform is a stand-in; for the true one these three declarations are changed, and nothing else.

// component is the registry's code for a design of the component context (seed: type = component).
const component = "0"

// row is a design as the registry keeps it; its members are called like the columns.
type row struct {
	ID             string    `json:"id"` // the run's own: whoever knows one finds the other
	OrganizationID int64     `json:"organization_id"`
	ProjectID      int64     `json:"project_id"`
	Type           string    `json:"type"`
	Name           string    `json:"name"`
	FigmaFileKey   string    `json:"figma_file_key"`
	WF2DesID       string    `json:"wf2des_id"`  // points to the run
	ResultURL      *string   `json:"result_url"` // and to its result: the S3 key
	CreatedAt      time.Time `json:"created_at"` // when the run was completed
	CreatedBy      string    `json:"created_by"` // who asked for the run
}

func rowOf(l lifecycle.Landing) row {
	return row{
		ID: l.Run.ID, OrganizationID: l.Run.OrganizationID, ProjectID: l.Run.ProjectID, Type: component, Name: l.Run.ScreenID,
		FigmaFileKey: l.Run.FigmaFileKey, WF2DesID: l.Run.ID, ResultURL: l.Run.ResultURL, CreatedAt: l.At, CreatedBy: l.Run.CreatedBy,
	}
}

const insertDesigns = `
INSERT INTO design (id, organization_id, project_id, type, name, figma_file_key, wf2des_id, result_url, created_at, created_by)
SELECT id, organization_id, project_id, type, name, figma_file_key, wf2des_id, result_url, created_at, created_by
FROM json_to_recordset($1::json) AS new (id text, organization_id bigint, project_id bigint, type design_type, name text,
	figma_file_key text, wf2des_id text, result_url text, created_at timestamptz, created_by text)
ORDER BY id
ON CONFLICT (wf2des_id) DO NOTHING`
