// Package jobs speaks to the AI workers: the message that asks for work, its way into SQS, and its way back when nobody has done it.
package jobs

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"math"
	"slices"
	"uuid"

	"framerun.dev/pkg/lifecycle"
)

// Schema names the form of Message. A change that an old worker would misread gets a new one.
const Schema = "framerun.job/1"

// Message is the body of an SQS message: one stage of one attempt of a run, with all that a worker needs to do it.
// Members are the seed's column names. It arrives at least once; the attempt tells a worker which of two is older.
type Message struct {
	Schema          string          `json:"schema"`
	JobID           string          `json:"job_id,omitzero"`     // wf2des.id
	Code2WFID       string          `json:"code2wf_id,omitzero"` // code2wf.id
	Kind            lifecycle.Kind  `json:"kind"`
	Edge            *lifecycle.Edge `json:"edge"` // null for code2wf
	Stage           lifecycle.Stage `json:"stage"`
	Attempt         int             `json:"attempt"`
	OrganizationID  int64           `json:"organization_id"`
	ProjectID       int64           `json:"project_id"`
	FigmaFileKey    string          `json:"figma_file_key"`
	WFNodeID        *string         `json:"wf_node_id"` // null for code2wf
	ScreenID        string          `json:"screen_id"`
	Prompt          *string         `json:"prompt"`
	PlacementTarget *string         `json:"placement_target"`
	AutoConfirm     *string         `json:"auto_confirm"`   // normal or auto_confirm; null for code2wf
	PageImportID    *string         `json:"page_import_id"` // null for wf2des
	ResultPrefix    string          `json:"result_prefix"`  // S3 prefix where this attempt's artifacts belong
	StatusURL       string          `json:"status_url"`     // where the signed webhook goes
	Traceparent     string          `json:"traceparent"`    // W3C trace context of the request that asked
}

// ReadMessage reads the body of a job that has come back from SQS. Its error says what is wrong and repeats nothing of the body. Members
// that it does not know are passed over: a newer suite may have written them.
func ReadMessage(body []byte) (Message, error) {
	var m Message
	if err := json.Unmarshal(body, &m); err != nil {
		return Message{}, errors.New("jobs: the message is not the JSON of a job")
	}
	run, err := uuid.Parse(m.Run().ID)
	switch {
	case m.Schema != Schema:
		return Message{}, errors.New("jobs: the message is of another schema than " + Schema)
	case !slices.Contains(lifecycle.Kinds, m.Kind),
		(m.Kind == lifecycle.WF2Des) != (m.JobID != ""), (m.Kind == lifecycle.Code2WF) != (m.Code2WFID != ""):
		return Message{}, errors.New("jobs: the message does not name one run of a known kind")
	case !slices.Contains([]lifecycle.Stage{lifecycle.StageParse, lifecycle.StageAssemble, lifecycle.StageGenerate}, m.Stage):
		return Message{}, errors.New("jobs: the message asks for no known stage")
	case err != nil || run.String() != m.Run().ID || m.Attempt < 1 || m.Attempt > math.MaxInt32:
		return Message{}, errors.New("jobs: the message does not name an attempt of a run")
	}
	return m, nil
}

// Run is the run that the message is about.
func (m Message) Run() lifecycle.Ref { return lifecycle.Ref{Kind: m.Kind, ID: m.JobID + m.Code2WFID} }

// message composes the message of job from the row as it was committed.
func message(job lifecycle.Job, prefix, statusURL string) Message {
	run := job.Run
	m := Message{
		Schema: Schema, Kind: run.Kind, Stage: job.Stage, Attempt: job.Attempt,
		OrganizationID: run.OrganizationID, ProjectID: run.ProjectID, FigmaFileKey: run.FigmaFileKey, ScreenID: run.ScreenID,
		Prompt: run.Prompt, PlacementTarget: run.PlacementTarget,
		ResultPrefix: prefix, StatusURL: statusURL, Traceparent: job.Traceparent,
	}
	if run.Kind == lifecycle.Code2WF {
		m.Code2WFID, m.PageImportID = run.ID, &run.PageImportID
		return m
	}
	mode := string(lifecycle.IfNormal)
	if run.AutoConfirm {
		mode = string(lifecycle.IfAutoConfirm)
	}
	m.JobID, m.Edge, m.WFNodeID, m.AutoConfirm = run.ID, &run.Edge, &run.WFNodeID, &mode
	return m
}

// body writes m so that SQS takes it whatever a layer is called: SQS refuses characters outside XML 1.0, so the two of them that
// JSON would leave raw are escaped. Every other one is below U+0020, which JSON always escapes.
func (m Message) body() ([]byte, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	b = bytes.ReplaceAll(b, []byte("\uFFFE"), []byte(`\ufffe`))
	return bytes.ReplaceAll(b, []byte("\uFFFF"), []byte(`\uffff`)), nil
}
