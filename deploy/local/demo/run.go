package demo

import (
	"cmp"
	"context"
	"encoding/json/v2"
	"fmt"
	"maps"
	"time"
)

// draft is the body of a POST: what a plugin says about the run it wants.
type draft map[string]any

// resource is what of a run's resource the stories look at.
type resource struct {
	ID             string            `json:"id"`
	FigmaFileKey   string            `json:"figmaFileKey"`
	ScreenID       string            `json:"screenId"`
	WFNodeID       string            `json:"wfNodeId"`
	Edge           string            `json:"edge"`
	Prompt         *string           `json:"prompt"`
	AutoConfirm    string            `json:"autoConfirm"`
	TriggerSurface string            `json:"triggerSurface"`
	PageImportID   string            `json:"pageImportId"`
	Status         string            `json:"status"`
	Phase          *string           `json:"phase"`
	Attempt        int               `json:"attempt"`
	ErrorMessage   *string           `json:"errorMessage"`
	MaterializedAt *time.Time        `json:"materializedAt"`
	FeedbackStatus *string           `json:"feedbackStatus"`
	Done           bool              `json:"done"`
	NextActions    []string          `json:"nextActions"`
	Links          map[string]string `json:"links"`
}

// state is the word for how the run is: its phase while there is one, else its status.
func (r resource) state() string {
	if r.Phase != nil {
		return *r.Phase
	}
	return r.Status
}

// run is a run that the plugin asks for, and the newest it knows of it.
type run struct {
	d         *demo
	kind      string
	frame     frame
	draft     draft
	oneOfMany bool // lines name the frame

	now     resource
	etag    string
	stream  *stream
	heard   int // progress reports
	started time.Time
	took    time.Duration // from the POST until the run had ended; 0 while it is open
}

// wf2des prepares a run of the frame; d adds to what every plugin says, or changes it.
func (d *demo) wf2des(f frame, add draft) *run {
	body := draft{"figmaFileKey": f.FileKey, "wfNodeId": f.NodeID, "screenId": f.Name}
	maps.Copy(body, add)
	return &run{d: d, kind: "wf2des", frame: f, draft: body}
}

func (d *demo) code2wf(fileKey, screen string) *run {
	body := draft{"figmaFileKey": fileKey, "pageImportId": d.seed.PageImportID, "screenId": screen}
	return &run{d: d, kind: "code2wf", frame: frame{FileKey: fileKey, Name: screen}, draft: body}
}

func (r *run) screen() string { return fmt.Sprint(r.draft["screenId"]) }

// source is what the run is made from, as the plugin named it.
func (r *run) source() string {
	if r.kind == "code2wf" {
		return fmt.Sprintf("%q, page import %s", r.screen(), r.draft["pageImportId"])
	}
	return fmt.Sprintf("%q, node %s", r.screen(), r.draft["wfNodeId"])
}

// label is the run's edge, or its kind where there are no edges.
func (r *run) label() string { return cmp.Or(r.now.Edge, r.kind) }

// outcome is how the run stands, and what the designer made of it.
func (r *run) outcome() string {
	text := r.now.state()
	if r.now.MaterializedAt != nil {
		text += ", placed"
	}
	if r.now.FeedbackStatus != nil {
		text += ", " + *r.now.FeedbackStatus
	}
	return text
}

func (r *run) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if r.oneOfMany {
		text += fmt.Sprintf("  %q", r.frame.Name)
	}
	r.d.page.line(time.Since(r.d.began), text)
}

// learn takes in the run as an answer shows it.
func (r *run) learn(a answer, status int) error {
	var now resource
	if err := a.read(status, &now); err != nil {
		return err
	}
	r.etag = cmp.Or(a.header.Get("ETag"), r.etag)
	return r.update(now, a.asked)
}

// update also checks what no step may ever change.
func (r *run) update(now resource, where string) error {
	if r.now.ID != "" && now.ID != r.now.ID {
		return surprise(where, "run "+r.now.ID, now.ID)
	}
	if now.ScreenID != r.screen() {
		return surprise(where, fmt.Sprintf("screenId %q as it was sent", r.screen()), fmt.Sprintf("%q", now.ScreenID))
	}
	if now.Done && r.took == 0 {
		r.took = time.Since(r.started)
	}
	r.now = now
	return nil
}

// do follows one of the run's own links by which something is done.
func (r *run) do(ctx context.Context, method, link string, body any) error {
	path, ok := r.now.Links[link]
	if !ok {
		links, _ := json.Marshal(r.now.Links, json.Deterministic(true)) // a map of strings always marshals
		return surprise("links of run "+r.now.ID, link, string(links))
	}
	a, err := r.d.plugin.ask(ctx, method, path, body)
	if err != nil {
		return err
	}
	return r.learn(a, 200)
}
