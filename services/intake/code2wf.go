package main

import (
	"uuid"

	"framerun.dev/pkg/figma"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/web"
)

// code2wfBody is what a caller may say about a new code2wf run. Every valid request is a new run and a new job (seed: no request
// deduplication); whether the page import may be used is asked in the insert's own statement.
type code2wfBody struct {
	PageImportID    *string `json:"pageImportId"`
	FigmaFileKey    *string `json:"figmaFileKey"`
	ScreenID        *string `json:"screenId"`
	PlacementTarget *string `json:"placementTarget"`
}

func (b code2wfBody) draft(caller web.Caller) (lifecycle.Run, error) {
	var f web.Fields
	run := lifecycle.Run{
		Ref:             lifecycle.Ref{Kind: lifecycle.Code2WF, ID: uuid.NewV7().String()},
		Tenant:          caller.Tenant,
		PageImportID:    f.Text("/pageImportId", b.PageImportID, true, maxText),
		FigmaFileKey:    figmaID(&f, "/figmaFileKey", b.FigmaFileKey, figma.FileKey),
		ScreenID:        f.Text("/screenId", b.ScreenID, true, maxText),
		PlacementTarget: placementTarget(&f, b.PlacementTarget),
	}
	return run, f.Err()
}
