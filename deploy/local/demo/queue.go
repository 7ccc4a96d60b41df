package demo

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// accepted is a message as SQS took it.
type accepted struct {
	Queue      string            `json:"queue"`
	Body       string            `json:"body"`
	Group      string            `json:"group"`
	Attributes map[string]string `json:"attributes"`
}

// job reads the message's body.
func (m accepted) job() (map[string]any, error) {
	var job map[string]any
	if err := json.Unmarshal([]byte(m.Body), &job); err != nil {
		return nil, fmt.Errorf("message in %s: %w", m.Queue, err)
	}
	return job, nil
}

// queued waits until SQS has taken the run's message for a stage, and compares it with the row: a name must arrive as it was sent.
func (r *run) queued(stage string) step {
	return func(ctx context.Context) error {
		m, err := r.message(ctx, stage)
		if err != nil {
			return err
		}
		if err := r.check(m, stage); err != nil {
			return err
		}
		r.say("SQS  %s took the job to %s, attempt %d: %d bytes, all as it stands in the row", m.Queue, stage, r.now.Attempt, len(m.Body))
		return nil
	}
}

// queuedInAll expects that SQS has taken exactly these messages for the run since it was created.
func (r *run) queuedInAll(stages ...string) step {
	return func(ctx context.Context) error {
		all, err := r.accepted(ctx)
		if err != nil {
			return err
		}
		var came []string
		for _, m := range all {
			came = append(came, m.Attributes["stage"])
		}
		if !slices.Equal(came, stages) {
			return surprise("messages of run "+r.now.ID, strings.Join(stages, ", "), strings.Join(came, ", "))
		}
		r.say("SQS  nothing but %s was asked of a worker", strings.Join(stages, ", "))
		return nil
	}
}

// message is the run's first message for the stage. A job leaves at most a second after its row, with a hint at once.
func (r *run) message(ctx context.Context, stage string) (accepted, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, fmt.Errorf("SQS has not taken the job to %s in ten seconds", stage))
	defer cancel()
	for {
		all, err := r.accepted(ctx)
		if err != nil {
			return accepted{}, err
		}
		for _, m := range all {
			if m.Attributes["stage"] == stage {
				return m, nil
			}
		}
		select {
		case <-ctx.Done():
			return accepted{}, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// accepted asks the local SQS for all messages that it ever took for the run.
func (r *run) accepted(ctx context.Context) ([]accepted, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", r.d.sqs+"/_framerun/accepted?run="+r.now.ID, nil)
	if err != nil {
		return nil, err
	}
	resp, err := r.d.plugin.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var all []accepted
	if err := json.UnmarshalRead(resp.Body, &all); err != nil {
		return nil, fmt.Errorf("messages of run %s: %w", r.now.ID, err)
	}
	return all, nil
}

// check compares the message with the run as the API showed it.
func (r *run) check(m accepted, stage string) error {
	job, err := m.job()
	if err != nil {
		return err
	}
	id, other := "job_id", "code2wf_id"
	if r.kind == "code2wf" {
		id, other = other, id
	}
	for member, want := range map[string]any{
		"schema": "framerun.job/1", "kind": r.kind, "stage": stage, "attempt": float64(r.now.Attempt), id: r.now.ID, other: nil,
		"figma_file_key": r.now.FigmaFileKey, "screen_id": r.screen(), "wf_node_id": orNil(r.now.WFNodeID), "edge": orNil(r.now.Edge),
		"prompt": r.draft["prompt"], "auto_confirm": orNil(r.now.AutoConfirm), "page_import_id": orNil(r.now.PageImportID),
		"project_id": float64(r.d.seed.ProjectID), "organization_id": float64(r.d.seed.OrganizationID),
		"result_prefix": fmt.Sprintf("%s/%s/%d/", r.kind, r.now.ID, r.now.Attempt),
	} {
		if job[member] != want {
			return surprise("message of run "+r.now.ID, fmt.Sprintf("%s %q", member, want), fmt.Sprintf("%q", job[member]))
		}
	}
	if kind, group := m.Attributes["kind"], m.Group; kind != r.kind || group != fmt.Sprint(r.d.seed.OrganizationID) {
		return surprise("message of run "+r.now.ID, "kind and organization outside of the body", kind+" and "+group)
	}
	return nil
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}
