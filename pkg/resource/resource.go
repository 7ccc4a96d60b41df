// Package resource is what a client sees of a run: the JSON that intake, interaction and query all answer with, what can be
// done next and when it is worth asking again.
package resource

import (
	"net/http"
	"strconv"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/web"
)

// run holds the members that both kinds show: the seed's columns in camelCase but for the delete audit, and what follows from them.
type run struct {
	Kind            lifecycle.Kind   `json:"kind"`
	ID              string           `json:"id"`
	OrganizationID  int64            `json:"organizationId"`
	ProjectID       int64            `json:"projectId"`
	FigmaFileKey    string           `json:"figmaFileKey"`
	ScreenID        string           `json:"screenId"`
	PlacementTarget *string          `json:"placementTarget"`
	Status          lifecycle.Status `json:"status"`
	Attempt         int              `json:"attempt"`
	FlagCount       *int             `json:"flagCount"`
	ResultURL       *string          `json:"resultUrl"` // S3 key; links.result leads to a link that can be fetched
	ErrorMessage    *string          `json:"errorMessage"`
	MaterializedAt  *string          `json:"materializedAt"`
	CreatedAt       string           `json:"createdAt"`
	UpdatedAt       string           `json:"updatedAt"`
	CreatedBy       string           `json:"createdBy"`
	UpdatedBy       string           `json:"updatedBy"`
	Done            bool             `json:"done"`
	NextActions     []lifecycle.Verb `json:"nextActions"`
	Links           links            `json:"links"`
	Progress        *Progress        `json:"progress,omitzero"`
}

// wf2des is a run of the wf2des table.
type wf2des struct {
	run
	WF2DesID       string                    `json:"wf2desId"`
	WFNodeID       string                    `json:"wfNodeId"`
	Edge           lifecycle.Edge            `json:"edge"`
	Prompt         *string                   `json:"prompt"`
	AutoConfirm    lifecycle.When            `json:"autoConfirm"`
	TriggerSurface lifecycle.Surface         `json:"triggerSurface"`
	Phase          *lifecycle.Phase          `json:"phase"`
	FeedbackStatus *lifecycle.FeedbackStatus `json:"feedbackStatus"`
	Score          *float64                  `json:"score"`
	ScoreVersion   *string                   `json:"scoreVersion"`
}

// code2wf is a run of the code2wf table, which has no phase, feedback or score.
type code2wf struct {
	run
	Code2WFID    string `json:"code2wfId"`
	PageImportID string `json:"pageImportId"`
}

// Progress is a worker's latest word on an open run.
type Progress struct {
	Percent *float64 `json:"percent"` // 0..100
	Message *string  `json:"message"`
	At      string   `json:"at"`
}

// Of shows r. Progress is nil where none is known.
func Of(r lifecycle.Run, progress *Progress) any {
	actions := r.NextActions()
	shared := run{
		Kind: r.Kind, ID: r.ID, OrganizationID: r.OrganizationID, ProjectID: r.ProjectID,
		FigmaFileKey: r.FigmaFileKey, ScreenID: r.ScreenID, PlacementTarget: r.PlacementTarget,
		Status: r.State.Status(), Attempt: r.Attempt, FlagCount: r.FlagCount, ResultURL: r.ResultURL, ErrorMessage: r.ErrorMessage,
		CreatedAt: web.Timestamp(r.CreatedAt), UpdatedAt: web.Timestamp(r.UpdatedAt), CreatedBy: r.CreatedBy, UpdatedBy: r.UpdatedBy,
		Done: r.Ended(), NextActions: actions, Links: linksOf(r, actions), Progress: progress,
	}
	if r.MaterializedAt != nil {
		shared.MaterializedAt = new(web.Timestamp(*r.MaterializedAt))
	}
	if r.Kind == lifecycle.Code2WF {
		return code2wf{run: shared, Code2WFID: r.ID, PageImportID: r.PageImportID}
	}
	out := wf2des{
		run: shared, WF2DesID: r.ID, WFNodeID: r.WFNodeID, Edge: r.Edge, Prompt: r.Prompt,
		AutoConfirm: lifecycle.IfNormal, TriggerSurface: r.TriggerSurface, FeedbackStatus: r.Feedback, ScoreVersion: r.ScoreVersion,
	}
	if r.AutoConfirm {
		out.AutoConfirm = lifecycle.IfAutoConfirm
	}
	if phase := r.State.Phase(); phase != "" {
		out.Phase = &phase
	}
	if r.Score != nil {
		out.Score = new(r.Score.Float())
	}
	return out
}

// links lead on from the run: to what can be read, and to what can be done now. A deleted run leads nowhere.
type links struct {
	Cancel   string `json:"cancel,omitzero"`
	Confirm  string `json:"confirm,omitzero"`
	Delete   string `json:"delete,omitzero"`
	Feedback string `json:"feedback,omitzero"`
	Place    string `json:"place,omitzero"`
	Reject   string `json:"reject,omitzero"`
	Result   string `json:"result,omitzero"`
	Self     string `json:"self,omitzero"`
	Timeline string `json:"timeline,omitzero"`
}

func linksOf(r lifecycle.Run, actions []lifecycle.Verb) (l links) {
	if r.DeletedAt != nil {
		return l
	}
	self := web.RunPath(r)
	l.Self, l.Timeline = self, self+"/timeline"
	if r.ResultURL != nil {
		l.Result = self + "/result"
	}
	for _, verb := range actions {
		switch verb { // most routes are called like their verb
		case lifecycle.Cancel:
			l.Cancel = self + "/cancel"
		case lifecycle.Confirm:
			l.Confirm = self + "/confirm"
		case lifecycle.Reject:
			l.Reject = self + "/confirm"
		case lifecycle.Place:
			l.Place = self + "/placement"
		case lifecycle.Rate:
			l.Feedback = self + "/feedback"
		case lifecycle.Delete:
			l.Delete = self
		}
	}
	return l
}

// RetryAfter is how many seconds a poller should wait before it asks again about an open run; 0 for an ended one.
// A designer takes longer than a worker.
func RetryAfter(r lifecycle.Run) int {
	switch {
	case r.Ended():
		return 0
	case r.State == lifecycle.AwaitingConfirm:
		return 5
	}
	return 2
}

// Header is what goes with a run in every answer: its version, and when to ask again.
func Header(r lifecycle.Run) http.Header {
	h := http.Header{"Etag": {web.ETag(r.ID, r.UpdatedAt)}, "Cache-Control": {"private, no-cache"}}
	if seconds := RetryAfter(r); seconds > 0 {
		h.Set("Retry-After", strconv.Itoa(seconds))
	}
	return h
}

// Reply answers with the run as it is now.
func Reply(r lifecycle.Run) *web.Reply { return &web.Reply{Header: Header(r), Body: Of(r, nil)} }
