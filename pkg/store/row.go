package store

import (
	"errors"
	"fmt"
	"time"

	"framerun.dev/pkg/lifecycle"
)

// row is a row of either seed table as sqlx reads it; columns that the other table lacks stay nil.
type row struct {
	ID              string     `db:"id"`
	OrganizationID  int64      `db:"organization_id"`
	ProjectID       int64      `db:"project_id"`
	FigmaFileKey    string     `db:"figma_file_key"`
	ScreenID        string     `db:"screen_id"`
	PlacementTarget *string    `db:"placement_target"`
	Status          string     `db:"status"`
	Attempt         int        `db:"attempt"`
	FlagCount       *int       `db:"flag_count"`
	ResultURL       *string    `db:"result_url"`
	ErrorMessage    *string    `db:"error_message"`
	MaterializedAt  *time.Time `db:"materialized_at"`
	CreatedAt       time.Time  `db:"created_at"`
	UpdatedAt       time.Time  `db:"updated_at"`
	DeletedAt       *time.Time `db:"deleted_at"`
	CreatedBy       string     `db:"created_by"`
	UpdatedBy       string     `db:"updated_by"`
	DeletedBy       *string    `db:"deleted_by"`

	WFNodeID       *string  `db:"wf_node_id"`
	Edge           *string  `db:"edge"`
	Prompt         *string  `db:"prompt"`
	AutoConfirm    *string  `db:"auto_confirm"`
	TriggerSurface *string  `db:"trigger_surface"`
	Phase          *string  `db:"phase"`
	FeedbackStatus *string  `db:"feedback_status"`
	Score          *float64 `db:"score"`
	ScoreVersion   *string  `db:"score_version"`

	PageImportID *string `db:"page_import_id"`
}

const sharedColumns = `id, organization_id, project_id, figma_file_key, screen_id, placement_target, status, attempt, flag_count,
	result_url, error_message, materialized_at, created_at, updated_at, deleted_at, created_by, updated_by, deleted_by`

// columns lists what a read of each table brings, by name.
var columns = map[lifecycle.Kind]string{
	lifecycle.WF2Des: sharedColumns + `, wf_node_id, edge, prompt, auto_confirm, trigger_surface, phase, feedback_status,
	score, score_version`,
	lifecycle.Code2WF: sharedColumns + `, page_import_id`,
}

// run turns a row into the domain's value.
func (r row) run(kind lifecycle.Kind) (lifecycle.Run, error) {
	state, err := stateOf(kind, code{r.Status, text(r.Phase)})
	run := lifecycle.Run{
		Ref:    lifecycle.Ref{Kind: kind, ID: r.ID},
		Tenant: lifecycle.Tenant{OrganizationID: r.OrganizationID, ProjectID: r.ProjectID},

		FigmaFileKey: r.FigmaFileKey, ScreenID: r.ScreenID, PlacementTarget: r.PlacementTarget,
		State: state, Attempt: r.Attempt, FlagCount: r.FlagCount, ResultURL: r.ResultURL, ErrorMessage: r.ErrorMessage,
		MaterializedAt: utc(r.MaterializedAt), CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(), DeletedAt: utc(r.DeletedAt),
		CreatedBy: r.CreatedBy, UpdatedBy: r.UpdatedBy, DeletedBy: r.DeletedBy,
	}
	if kind == lifecycle.Code2WF {
		run.PageImportID = text(r.PageImportID)
		return run, err
	}
	return run, errors.Join(err, r.wf2des(&run))
}

// wf2des fills in what only that table has.
func (r row) wf2des(run *lifecycle.Run) (err error) {
	var errs [4]error
	run.WFNodeID, run.Prompt, run.ScoreVersion = text(r.WFNodeID), r.Prompt, r.ScoreVersion
	run.AutoConfirm, errs[3] = word(confirmCodes, text(r.AutoConfirm))
	run.Edge, errs[0] = word(edgeCodes, text(r.Edge))
	run.TriggerSurface, errs[1] = word(surfaceCodes, text(r.TriggerSurface))
	if r.FeedbackStatus != nil {
		var f lifecycle.FeedbackStatus
		f, errs[2] = word(feedbackCodes, *r.FeedbackStatus)
		run.Feedback = &f
	}
	if r.Score != nil {
		score, ok := lifecycle.NewScore(*r.Score)
		if !ok {
			return fmt.Errorf("store: score %v lies outside 0..1", *r.Score)
		}
		run.Score = &score
	}
	return errors.Join(errs[:]...)
}

func runs(kind lifecycle.Kind, rows []row) ([]lifecycle.Run, error) {
	out := make([]lifecycle.Run, len(rows))
	for i, r := range rows {
		var err error
		if out[i], err = r.run(kind); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// orNull turns the zero value into NULL.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
