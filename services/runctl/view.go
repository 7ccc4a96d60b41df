package main

import (
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

// The views are what scripts read: members are added, never renamed or taken away. Times are UTC with microseconds.

// list is every list.
type list[T any] struct {
	Items []T `json:"items"`
}

func items[V, T any](all []V, view func(V) T) list[T] {
	l := list[T]{Items: make([]T, len(all))}
	for i, v := range all {
		l.Items[i] = view(v)
	}
	return l
}

type runView struct {
	ID             string           `json:"id"`
	Kind           lifecycle.Kind   `json:"kind"`
	Edge           lifecycle.Edge   `json:"edge,omitzero"`
	State          lifecycle.State  `json:"state"`
	Status         lifecycle.Status `json:"status"`
	Phase          lifecycle.Phase  `json:"phase,omitzero"`
	Attempt        int              `json:"attempt"`
	OrganizationID int64            `json:"organizationId"`
	ProjectID      int64            `json:"projectId"`
	FigmaFileKey   string           `json:"figmaFileKey"`
	WFNodeID       string           `json:"wfNodeId,omitzero"`
	PageImportID   string           `json:"pageImportId,omitzero"`
	ScreenID       string           `json:"screenId"`
	AutoConfirm    bool             `json:"autoConfirm"`
	ResultURL      *string          `json:"resultUrl"`
	ErrorMessage   *string          `json:"errorMessage"`
	CreatedAt      string           `json:"createdAt"`
	CreatedBy      string           `json:"createdBy"`
	UpdatedAt      string           `json:"updatedAt"`
	UpdatedBy      string           `json:"updatedBy"`
	DeletedAt      *string          `json:"deletedAt"`
}

func viewOf(r lifecycle.Run) runView {
	return runView{
		ID: r.ID, Kind: r.Kind, Edge: r.Edge, State: r.State, Status: r.State.Status(), Phase: r.State.Phase(), Attempt: r.Attempt,
		OrganizationID: r.OrganizationID, ProjectID: r.ProjectID, FigmaFileKey: r.FigmaFileKey, WFNodeID: r.WFNodeID,
		PageImportID: r.PageImportID, ScreenID: r.ScreenID, AutoConfirm: r.AutoConfirm, ResultURL: r.ResultURL, ErrorMessage: r.ErrorMessage,
		CreatedAt: timestamp(r.CreatedAt), CreatedBy: r.CreatedBy, UpdatedAt: timestamp(r.UpdatedAt), UpdatedBy: r.UpdatedBy,
		DeletedAt: perhaps(r.DeletedAt),
	}
}

func perhaps(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return new(timestamp(*t))
}

type lineView struct {
	Seq          int               `json:"seq"`
	At           string            `json:"at"`
	What         lifecycle.What    `json:"what"`
	Outcome      lifecycle.Outcome `json:"outcome"`
	By           lifecycle.Voice   `json:"by"`
	Actor        string            `json:"actor"`
	From         lifecycle.State   `json:"from,omitzero"`
	To           lifecycle.State   `json:"to"`
	Attempt      int               `json:"attempt"`
	ErrorMessage *string           `json:"errorMessage,omitzero"`
	ResultURL    *string           `json:"resultUrl,omitzero"`
	Delivery     *string           `json:"delivery,omitzero"`
}

func lineOf(e lifecycle.Event) lineView {
	return lineView{Seq: e.Seq, At: timestamp(e.At), What: e.What, Outcome: e.Outcome, By: e.By.Voice, Actor: e.By.Name, From: e.From, To: e.To,
		Attempt: e.Attempt, ErrorMessage: e.Data.ErrorMessage, ResultURL: e.Data.ResultURL, Delivery: e.Data.Delivery}
}

type entryView struct {
	ID          int64            `json:"id"`
	Destination string           `json:"destination"`
	Kind        lifecycle.Kind   `json:"kind"`
	RunID       string           `json:"runId"`
	Attempt     int              `json:"attempt"`
	Stage       lifecycle.Stage  `json:"stage,omitzero"`
	Seq         int              `json:"seq,omitzero"`
	State       store.EntryState `json:"state"`
	Tries       int              `json:"tries"`
	LastError   string           `json:"lastError,omitzero"`
	CreatedAt   string           `json:"createdAt"`
	DueAt       string           `json:"dueAt"`
	SettledAt   *string          `json:"settledAt"`
}

func entryOf(e store.Entry) entryView {
	return entryView{ID: e.ID, Destination: e.Destination, Kind: e.Run.Kind, RunID: e.Run.ID, Attempt: e.Attempt, Stage: e.Stage, Seq: e.Seq,
		State: e.State, Tries: e.Tries, LastError: e.LastError, CreatedAt: timestamp(e.CreatedAt), DueAt: timestamp(e.DueAt),
		SettledAt: perhaps(e.SettledAt)}
}
