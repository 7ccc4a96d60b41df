package platform

import (
	"context"
	"database/sql"
	"fmt"
)

// The organizations and projects that Seed makes: two projects side by side in one organization, one in another.
const (
	OrganizationID      int64 = 1
	OtherOrganizationID int64 = 2

	ProjectID                  int64 = 1
	OtherProjectID             int64 = 2
	OtherOrganizationProjectID int64 = 3
)

// The Cognito subjects that Seed makes known: three people, and the service account that workers' changes are put down to.
const (
	UserPlugin            = "user-plugin"
	UserAPI               = "user-api"
	UserOtherOrganization = "user-other-organization"
	UserWorker            = "framerun-worker"
)

// The page imports that Seed makes. Only PageImportID can start a code2wf run of ProjectID; the others show one
// reason each why a page import cannot.
const (
	PageImportID                  = "01980000-0000-7000-8000-000000000001"
	UnfinishedPageImportID        = "01980000-0000-7000-8000-000000000002"
	DeletedPageImportID           = "01980000-0000-7000-8000-000000000003"
	OtherProjectPageImportID      = "01980000-0000-7000-8000-000000000004"
	OtherOrganizationPageImportID = "01980000-0000-7000-8000-000000000005"
)

// Seed fills the stand-ins with the few rows that local use and tests start from. Rows that are there already stay as they are.
func Seed(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("platform: seeding: %w", err)
	}
	defer tx.Rollback()
	for _, s := range seeds() {
		if _, err := tx.ExecContext(ctx, s.insert, s.values...); err != nil {
			return fmt.Errorf("platform: seeding: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("platform: seeding: %w", err)
	}
	return nil
}

type seed struct {
	insert string
	values []any
}

func seeds() []seed {
	return []seed{
		{`INSERT INTO organization (id, name) VALUES ($1, 'Framerun'), ($2, 'Another organization') ON CONFLICT DO NOTHING`,
			[]any{OrganizationID, OtherOrganizationID}},
		{`INSERT INTO project (id, organization_id) VALUES ($1, $4), ($2, $4), ($3, $5) ON CONFLICT DO NOTHING`,
			[]any{ProjectID, OtherProjectID, OtherOrganizationProjectID, OrganizationID, OtherOrganizationID}},
		{`INSERT INTO "user" (cognito_sub) VALUES ($1), ($2), ($3), ($4) ON CONFLICT DO NOTHING`,
			[]any{UserPlugin, UserAPI, UserOtherOrganization, UserWorker}},
		pageImport(PageImportID, OrganizationID, ProjectID, "1", false),
		pageImport(UnfinishedPageImportID, OrganizationID, ProjectID, "0", false),
		pageImport(DeletedPageImportID, OrganizationID, ProjectID, "1", true),
		pageImport(OtherProjectPageImportID, OrganizationID, OtherProjectID, "1", false),
		pageImport(OtherOrganizationPageImportID, OtherOrganizationID, OtherOrganizationProjectID, "1", false),
	}
}

func pageImport(id string, organization, project int64, status string, deleted bool) seed {
	return seed{
		`INSERT INTO page_import (id, organization_id, project_id, status, deleted_at)
		VALUES ($1, $2, $3, $4, CASE WHEN $5 THEN CURRENT_TIMESTAMP END) ON CONFLICT DO NOTHING`,
		[]any{id, organization, project, status, deleted},
	}
}
