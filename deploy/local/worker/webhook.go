package worker

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"
	"uuid"

	"framerun.dev/pkg/auth"
)

// word is the body of a webhook but for what names the run.
type word map[string]any

// answer is what the suite says to a word.
type answer struct {
	Outcome  string  `json:"outcome"`
	Status   string  `json:"status"`
	Phase    *string `json:"phase"`
	Attempt  int     `json:"attempt"`
	Continue bool    `json:"continue"`
}

// tries is how often a webhook is sent that is not taken for a passing reason.
const tries = 8

// tell sends a word and tries again on 429, 503 and broken connections; any other refusal is final. errUnwanted: the suite
// does not want the work to go on.
func (t task) tell(ctx context.Context, w word) (answer, error) {
	w = maps.Clone(w)
	w["attempt"] = t.job.Attempt
	if t.job.JobID != "" {
		w["job_id"] = t.job.JobID
	} else {
		w["code2wf_id"] = t.job.Code2WFID
	}
	body, err := json.Marshal(w, json.Deterministic(true))
	if err != nil {
		return answer{}, err
	}
	id := "msg_" + uuid.NewV7().String() // the same for every try: it is one word
	for try := 1; ; try++ {
		a, again, err := t.post(ctx, id, body)
		switch {
		case err == nil && !a.Continue && w["event"] == "progress":
			return a, errUnwanted
		case err == nil:
			t.log.Info("told", "event", w["event"], "outcome", a.Outcome, "status", a.Status)
			return a, nil
		case !again || try == tries || ctx.Err() != nil:
			return a, err
		}
		pause(ctx, min(time.Duration(try)*200*time.Millisecond, 2*time.Second))
	}
}

// post sends the word once. again reports whether another try makes sense.
func (t task) post(ctx context.Context, id string, body []byte) (a answer, again bool, err error) {
	signer, err := auth.NewWebhooks([]string{t.worker.Secret}, time.Now)
	if err != nil {
		return a, false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.job.StatusURL, bytes.NewReader(body))
	if err != nil {
		return a, false, err
	}
	req.Header = signer.Sign(id, time.Now(), body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("traceparent", t.job.Traceparent)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return a, true, fmt.Errorf("worker: webhook: %w", err)
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	if err != nil {
		return a, true, fmt.Errorf("worker: webhook: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		passing := res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable
		return a, passing, fmt.Errorf("worker: webhook refused: %s: %s", res.Status, said)
	}
	return a, false, json.Unmarshal(said, &a)
}
