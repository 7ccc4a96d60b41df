package main

import (
	"uuid"

	"framerun.dev/pkg/figma"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/web"
)

// wf2desBody is what a caller may say about a new wf2des run. Everything else about it is derived.
type wf2desBody struct {
	FigmaFileKey    *string `json:"figmaFileKey"`
	WFNodeID        *string `json:"wfNodeId"`
	ScreenID        *string `json:"screenId"`
	Edge            *string `json:"edge"`
	Prompt          *string `json:"prompt"`
	PlacementTarget *string `json:"placementTarget"`
	AutoConfirm     *string `json:"autoConfirm"`
}

func (b wf2desBody) draft(caller web.Caller) (lifecycle.Run, error) {
	var f web.Fields
	mode := web.Word(&f, "/autoConfirm", b.AutoConfirm, lifecycle.IfNormal, lifecycle.IfNormal, lifecycle.IfAutoConfirm)
	run := lifecycle.Run{
		Ref:             lifecycle.Ref{Kind: lifecycle.WF2Des, ID: uuid.NewV7().String()},
		Tenant:          caller.Tenant,
		FigmaFileKey:    figmaID(&f, "/figmaFileKey", b.FigmaFileKey, figma.FileKey),
		WFNodeID:        figmaID(&f, "/wfNodeId", b.WFNodeID, figma.NodeID),
		ScreenID:        f.Text("/screenId", b.ScreenID, true, maxText),
		Edge:            web.Word(&f, "/edge", b.Edge, lifecycle.EdgeWF2Des, lifecycle.EdgeWF2Des, lifecycle.EdgeDes2WF),
		Prompt:          b.Prompt,
		PlacementTarget: placementTarget(&f, b.PlacementTarget),
		AutoConfirm:     mode == lifecycle.IfAutoConfirm,
		TriggerSurface:  caller.Surface,
	}
	f.Text("/prompt", b.Prompt, false, maxPrompt)
	return run, f.Err()
}

// figmaID checks a required Figma id and returns its canonical form.
func figmaID(f *web.Fields, field string, value *string, canonical func(string) (string, error)) string {
	if value == nil {
		f.Refuse(field, "is required")
		return ""
	}
	id, err := canonical(*value)
	if err != nil {
		f.Refuse(field, err.Error())
	}
	return id
}

// placementTarget is a node id too, but optional.
func placementTarget(f *web.Fields, value *string) *string {
	if value == nil {
		return nil
	}
	return new(figmaID(f, "/placementTarget", value, figma.NodeID))
}
