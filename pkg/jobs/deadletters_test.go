package jobs_test

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json/v2"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/jobs"
	"framerun.dev/pkg/lifecycle"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"
)

// Catches a job that the suite itself has sent and cannot read when it comes back.
func TestEveryJobSentCanBeReadAgain(t *testing.T) {
	t.Parallel()
	q := newQueue(t, nil)
	sent := []lifecycle.Job{job(1), job(2, func(j *lifecycle.Job) { j.Stage, j.Attempt = lifecycle.StageAssemble, 7 }), job(3, asCode2WF),
		job(4, func(j *lifecycle.Job) { j.Run.ScreenID = "\ufffe\b 画面\uffff" })}
	for i, err := range q.sender().Send(t.Context(), sent) {
		if err != nil {
			t.Fatalf("job %d: %v", i, err)
		}
	}
	read := map[string]jobs.Message{}
	for _, e := range q.entries() {
		m, err := jobs.ReadMessage([]byte(e.MessageBody))
		if err != nil {
			t.Errorf("%s: %v", e.MessageBody, err)
		}
		read[m.Run().ID] = m
	}
	for _, j := range sent {
		if m := read[j.Run.ID]; m.Run() != j.Run.Ref || m.Stage != j.Stage || m.Attempt != j.Attempt || m.ScreenID != j.Run.ScreenID {
			t.Errorf("%+v was read as %+v", j, m)
		}
	}
}

// Catches a message that says nothing and is taken for a job, an error that repeats what is in it, and one that a newer suite has
// written and is not read.
func TestMessagesThatAreNoJobs(t *testing.T) {
	t.Parallel()
	whole := map[string]any{"schema": jobs.Schema, "job_id": runID(1), "kind": "wf2des", "stage": "parse", "attempt": 1, "screen_id": "hunter2"}
	for name, tc := range map[string]struct {
		change map[string]any // nil takes a member away
		ok     bool
	}{
		"whole": {nil, true}, "a member more": {map[string]any{"hue": "blue"}, true},
		"no schema": {map[string]any{"schema": nil}, false}, "another schema": {map[string]any{"schema": "framerun.job/2"}, false},
		"no kind": {map[string]any{"kind": nil}, false}, "another kind": {map[string]any{"kind": "des2wf"}, false},
		"the other kind": {map[string]any{"kind": "code2wf"}, false}, "two runs": {map[string]any{"code2wf_id": runID(2)}, false},
		"no run": {map[string]any{"job_id": nil}, false}, "no id": {map[string]any{"job_id": "hunter2"}, false},
		"an id in capitals": {map[string]any{"job_id": strings.ToUpper("01980000-0000-7000-8000-00000000000a")}, false},
		"another stage":     {map[string]any{"stage": "hunter2"}, false},
		"no attempt":        {map[string]any{"attempt": nil}, false}, "attempt 0": {map[string]any{"attempt": 0}, false},
		"a great attempt": {map[string]any{"attempt": 1 << 31}, false}, "attempt of words": {map[string]any{"attempt": "hunter2"}, false},
	} {
		body := map[string]any{}
		for _, members := range []map[string]any{whole, tc.change} {
			for member, value := range members {
				if body[member] = value; value == nil {
					delete(body, member)
				}
			}
		}
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		m, err := jobs.ReadMessage(raw)
		if (err == nil) != tc.ok || err != nil && (m != jobs.Message{} || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	for _, raw := range []string{"", "null", "[]", "{", `"hunter2"`, "\xff", `{"schema":"a","schema":"b"}`} {
		if _, err := jobs.ReadMessage([]byte(raw)); err == nil {
			t.Errorf("%q is a job", raw)
		}
	}
}

// dlq is a dead letter queue without a network. It gives its letters once, and notes what was asked of it.
type dlq struct {
	bodies []string
	asked  []string
	status int
}

func (q *dlq) Do(r *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	q.asked = append(q.asked, operation+" "+string(raw))
	out := map[string]any{}
	if operation == "ReceiveMessage" {
		messages := []any{}
		for i, body := range q.bodies {
			sum := md5.Sum([]byte(body))
			messages = append(messages, map[string]any{"MessageId": fmt.Sprint("m-", i), "ReceiptHandle": fmt.Sprint("r-", i), "Body": body,
				"MD5OfBody": hex.EncodeToString(sum[:])})
		}
		out["Messages"] = messages
	}
	body, err := json.Marshal(out)
	return &http.Response{StatusCode: max(q.status, 200), Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(bytes.NewReader(body)), Request: r}, err
}

func (q *dlq) letters() *jobs.DeadLetters {
	return &jobs.DeadLetters{URL: "https://sqs/dlq", Client: sqs.New(sqs.Options{
		Region: "ap-northeast-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
		BaseEndpoint: aws.String("http://127.0.0.1:1"), HTTPClient: q, Retryer: aws.NopRetryer{},
	})}
}

// Catches a letter that is lost because its neighbour cannot be read, that is settled by another one's receipt, or that is asked for in
// a loop without pause.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	q := &dlq{bodies: []string{`{"schema":"framerun.job/1","code2wf_id":"` + runID(1) + `","kind":"code2wf","stage":"generate","attempt":1}`, "hunter2"}}
	d := q.letters()
	letters, err := d.Receive(t.Context())
	if err != nil || len(letters) != 2 {
		t.Fatalf("%v, %v", letters, err)
	}
	if l := letters[0]; l.ID != "m-0" || l.Broken != nil || l.Message.Run() != (lifecycle.Ref{Kind: lifecycle.Code2WF, ID: runID(1)}) {
		t.Errorf("%+v", l)
	}
	if l := letters[1]; l.ID != "m-1" || l.Broken == nil {
		t.Errorf("%+v", l)
	}
	if err := d.Forget(t.Context(), letters[0]); err != nil {
		t.Error(err)
	}
	if err := d.Leave(t.Context(), letters[1], time.Hour); err != nil {
		t.Error(err)
	}
	want := []string{
		`ReceiveMessage {"MaxNumberOfMessages":10,"QueueUrl":"https://sqs/dlq","VisibilityTimeout":30,"WaitTimeSeconds":20}`,
		`DeleteMessage {"QueueUrl":"https://sqs/dlq","ReceiptHandle":"r-0"}`,
		`ChangeMessageVisibility {"QueueUrl":"https://sqs/dlq","ReceiptHandle":"r-1","VisibilityTimeout":3600}`,
	}
	if diff := cmp.Diff(want, q.asked); diff != "" {
		t.Errorf("SQS was asked (-want +got):\n%s", diff)
	}
	q.status = 503
	if _, err := d.Receive(t.Context()); err == nil {
		t.Error("SQS is down, and nobody hears of it")
	}
	if d.Forget(t.Context(), letters[0]) == nil || d.Leave(t.Context(), letters[1], time.Hour) == nil {
		t.Error("SQS is down, and a letter counts as settled")
	}
}
