package main

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"net/http"

	"framerun.dev/pkg/lifecycle"
)

type sendCommand struct {
	ID    string `arg:"" optional:"" help:"The run's id."`
	Event string `arg:"" optional:"" enum:"parsed,completed,failed,progress," default:"" help:"What the worker says: parsed, completed, failed or progress."`

	Attempt      int      `help:"The attempt that the word is about; the run's own without it."`
	ResultURL    string   `name:"result-url" placeholder:"KEY" help:"completed: the S3 key of the result; KIND/ID/ATTEMPT/result.json without it. failed: the artifact that shows the failure."`
	FlagCount    *int     `placeholder:"N" help:"completed: the number of flags."`
	Score        *float64 `placeholder:"0..1" help:"completed: the score."`
	ScoreVersion string   `placeholder:"NAME" help:"completed: which score it is."`
	ErrorCode    string   `placeholder:"CODE" help:"failed: a code that has its sentence, such as model_unavailable."`
	ErrorMessage string   `placeholder:"TEXT" help:"failed: free text."`
	Percent      *float64 `placeholder:"0..100" help:"progress: how far it is."`
	Message      string   `placeholder:"TEXT" help:"progress: what is going on."`

	Body   string `placeholder:"FILE" help:"Send this body as it stands instead; - is standard input."`
	DryRun bool   `help:"Show what would be sent, and send nothing."`
}

func (sendCommand) Help() string {
	return `This speaks with a worker's voice: in the timeline stands the service account, not you. To end or free a run in your own name use runctl runs. The answer's "outcome" says what became of the word, "continue" whether the work is still wanted. A word that came too late (duplicate, superseded, already_terminal) is no error. Refusals exit with 4 (404: 3; 5 for 429 and 503).

Examples:

    runctl webhook send 01980000-0000-7000-8000-000000000001 parsed
    runctl webhook send 01980000-0000-7000-8000-000000000001 progress --percent 40 --message "Placing layers"
    runctl webhook send 01980000-0000-7000-8000-000000000001 failed --error-code model_unavailable
    runctl webhook send --body body.json`
}

// heard is what was sent and what was answered.
type heard struct {
	DryRun bool              `json:"dryRun"`
	Sent   jsontext.Value    `json:"sent"`
	Header map[string]string `json:"headers"`
	Status int               `json:"status,omitzero"` // HTTP
	Answer jsontext.Value    `json:"answer,omitzero"`
}

func (c sendCommand) Run(ctx context.Context, s *hand) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	url, err := s.pick(s.WebhookURL, "the webhook", "--webhook-url (STATUS_URL)", func(l *stack) string { return l.Webhook.URL })
	if err != nil {
		return err
	}
	signer, err := s.signer()
	if err != nil {
		return err
	}
	body, err := c.body(ctx, s)
	if err != nil {
		return err
	}
	header := signCommand{}.sign(signer, body)
	h := heard{DryRun: c.DryRun, Sent: readable(body), Header: flat(header)}
	if !c.DryRun {
		var said []byte
		if h.Status, said, err = s.post(ctx, url, header, body); err != nil {
			return err
		}
		h.Answer = readable(said)
	}
	err = s.show(h, func(w io.Writer) { h.tell(w, url) })
	if err == nil {
		err = verdict(h.Status)
	}
	return err
}

// readable is a body as JSON, or as a JSON string if it is none.
func readable(body []byte) jsontext.Value {
	v := jsontext.Value(bytes.Clone(body))
	if v.IsValid() {
		return v
	}
	quoted, _ := jsontext.AppendQuote(nil, string(bytes.ToValidUTF8(body, []byte("\uFFFD"))))
	return quoted
}

func (h heard) tell(w io.Writer, url string) {
	if h.DryRun {
		fmt.Fprintf(w, "would post to %s (dry run: nothing was sent)\n", url)
		for _, name := range signed {
			fmt.Fprintf(w, "%s: %s\n", name, h.Header[name])
		}
		fmt.Fprintf(w, "\n%s\n", h.Sent)
		return
	}
	fmt.Fprintf(w, "sent      %s\nanswered  %d %s\n", h.Sent, h.Status, h.Answer)
}

// verdict turns the webhook's HTTP status into an error with the exit code's meaning.
func verdict(status int) error {
	switch {
	case status == 0 || status == http.StatusOK:
		return nil
	case status == http.StatusNotFound:
		return fmt.Errorf("%w", lifecycle.ErrNotFound)
	case status == http.StatusTooManyRequests || status >= 500:
		return fmt.Errorf("service status answered %d: %w", status, lifecycle.ErrUnavailable)
	case status == http.StatusUnauthorized:
		return refused("service status does not accept the signature (401): it has other secrets, or its clock is more than 5 minutes off")
	}
	return refused("service status answered %d", status)
}

// body is the word as a worker writes it: members are the seed's column names.
func (c sendCommand) body(ctx context.Context, s *hand) ([]byte, error) {
	if c.Body != "" {
		return s.read(c.Body)
	}
	if c.ID == "" || c.Event == "" {
		return nil, usage("give a run's id and an event (parsed, completed, failed or progress), or --body FILE")
	}
	run, err := s.find(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	word := map[string]any{"job_id": run.ID, "event": c.Event, "attempt": run.Attempt}
	if run.Kind == lifecycle.Code2WF {
		delete(word, "job_id")
		word["code2wf_id"] = run.ID
	}
	if c.Attempt != 0 {
		word["attempt"] = c.Attempt
	}
	c.fill(word, fmt.Sprintf("%s/%s/%v/result.json", run.Kind, run.ID, word["attempt"]))
	return json.Marshal(word, json.Deterministic(true))
}

// fill adds what belongs to the event.
func (c sendCommand) fill(word map[string]any, key string) {
	put := func(into map[string]any, name string, value any, given bool) {
		if given {
			into[name] = value
		}
	}
	put(word, "result_url", c.ResultURL, c.ResultURL != "")
	switch c.Event {
	case "completed":
		put(word, "result_url", key, c.ResultURL == "")
		put(word, "flag_count", c.FlagCount, c.FlagCount != nil)
		put(word, "score", c.Score, c.Score != nil)
		put(word, "score_version", c.ScoreVersion, c.ScoreVersion != "")
	case "failed":
		word["manifest"] = map[string]any{"error_code": c.ErrorCode, "error_message": c.ErrorMessage}
	case "progress":
		progress := map[string]any{}
		put(progress, "percent", c.Percent, c.Percent != nil)
		put(progress, "message", c.Message, c.Message != "")
		word["progress"] = progress
	}
}
