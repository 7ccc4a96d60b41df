package e2e

import (
	"bytes"
	"encoding/json/v2"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"uuid"

	"framerun.dev/pkg/auth"
)

// reply is a whole answer. The body is nil where it is empty or no JSON object.
type reply struct {
	status int
	header http.Header
	body   map[string]any
	raw    string
}

func (r reply) text(member string) string { return fmt.Sprint(r.body[member]) }

// patient bounds every request of the tests: longer than a waiting GET may take.
var patient = &http.Client{Timeout: 30 * time.Second}

// ask sends a request as the plugin's user. A path goes to the gateway; headers are name, value, name, value.
func (s *suite) ask(t *testing.T, method, target string, body any, headers ...string) reply {
	t.Helper()
	r, err := s.try(method, target, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// try is ask for other goroutines than the test's own.
func (s *suite) try(method, target string, body any, headers ...string) (reply, error) {
	req, err := s.request(method, target, body)
	if err != nil {
		return reply{}, err
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return answered(patient.Do(req))
}

func (s *suite) request(method, target string, body any) (*http.Request, error) {
	var sent io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		sent = bytes.NewReader(raw)
	}
	if strings.HasPrefix(target, "/") {
		target = s.at.Gateway + target
	}
	req, err := http.NewRequest(method, target, sent)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.at.Tokens.Plugin)
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

func answered(res *http.Response, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{}, err
	}
	r := reply{status: res.StatusCode, header: res.Header, raw: string(raw)}
	if err := json.Unmarshal(raw, &r.body); err != nil {
		r.body = nil
	}
	return r, nil
}

// want stops the test unless the answer has the status.
func (r reply) want(t *testing.T, status int) reply {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %s", r.status, status, r.raw)
	}
	return r
}

// run is a wf2des run of the test's own node.
type run struct{ id, self, etag string }

var nodes atomic.Int64

// draft is a body that no other request's node stands in the way of.
func draft() map[string]any {
	return map[string]any{"figmaFileKey": "itMrdXTfcIHTHbSGK0Ivox", "wfNodeId": fmt.Sprintf("77:%d", nodes.Add(1)), "screenId": " DB관리"}
}

const collection = "/v1/projects/1/wf2des"

func (s *suite) create(t *testing.T) run {
	t.Helper()
	return created(s.ask(t, "POST", collection, draft()).want(t, 201))
}

func created(r reply) run {
	return run{id: r.text("id"), self: r.header.Get("Location"), etag: r.header.Get("ETag")}
}

// state is the run's phase, or its status when it has ended. It shows a version that never was, so that query looks.
func (s *suite) state(t *testing.T, r run) string {
	t.Helper()
	return stateOf(s.ask(t, "GET", r.self, nil, "If-None-Match", `"`+r.id+`.9000000000000000"`).want(t, 200))
}

func stateOf(r reply) string {
	if phase := r.body["phase"]; phase != nil {
		return phase.(string)
	}
	return r.text("status")
}

// word is a webhook about the run, signed and not yet sent.
func (s *suite) word(t *testing.T, r run, event string, more map[string]any) (body []byte, header http.Header) {
	t.Helper()
	members := map[string]any{"job_id": r.id, "attempt": 1, "event": event}
	maps.Copy(members, more)
	body, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := auth.NewWebhooks([]string{s.at.Webhook.Secret}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	header = signer.Sign("msg_"+uuid.NewV7().String(), time.Now(), body)
	header.Set("Content-Type", "application/json")
	return body, header
}

// tell sends a webhook as a worker does.
func (s *suite) tell(t *testing.T, r run, event string, more map[string]any) reply {
	t.Helper()
	body, header := s.word(t, r, event, more)
	got, err := s.post(body, header)
	if err != nil {
		t.Fatal(err)
	}
	return got.want(t, 200)
}

func (s *suite) post(body []byte, header http.Header) (reply, error) {
	req, err := http.NewRequest("POST", s.at.Webhook.URL, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header = header
	return answered(patient.Do(req))
}

// result is what goes with a completed event.
func (r run) result() map[string]any {
	return map[string]any{"result_url": "wf2des/" + r.id + "/1/result.json", "flag_count": 2, "score": 0.9133, "score_version": "ds@1.0"}
}

// confirm is the designer's word.
func (s *suite) confirm(t *testing.T, r run) {
	t.Helper()
	s.ask(t, "POST", r.self+"/confirm", map[string]any{"decision": "confirm", "attempt": 1}).want(t, 200)
}

// jobs counts the messages that SQS has accepted for the run's stage.
func (s *suite) jobs(r run, stage string) int {
	n := 0
	for _, m := range s.SQS.Log() {
		if strings.Contains(m.Body, `"job_id":"`+r.id+`"`) && m.Attributes["stage"].StringValue == stage {
			n++
		}
	}
	return n
}
