package jobs_test

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json/v2"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"framerun.dev/pkg/artifacts"
	"framerun.dev/pkg/jobs"
	"framerun.dev/pkg/lifecycle"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// request is what arrives at SQS for one SendMessageBatch (AWS JSON 1.0).
type request struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []entry
}

type entry struct {
	ID                string `json:"Id"`
	MessageBody       string
	MessageGroupID    string `json:"MessageGroupId"`
	MessageAttributes map[string]struct{ DataType, StringValue string }
}

// size is what SQS counts of a message.
func (e entry) size() int {
	n := len(e.MessageBody)
	for name, a := range e.MessageAttributes {
		n += len(name) + len(a.DataType) + len(a.StringValue)
	}
	return n
}

type taken struct {
	ID               string `json:"Id"`
	MessageID        string `json:"MessageId"`
	MD5OfMessageBody string
}

type failure struct {
	ID            string `json:"Id"`
	Code, Message string
	SenderFault   bool
}

// answer is SQS's answer: entries, or with Type set a refusal of the whole request.
type answer struct {
	Successful []taken   `json:",omitempty"`
	Failed     []failure `json:",omitempty"`
	Type       string    `json:"__type,omitempty"`
	status     int
}

func whole(status int, code string) answer {
	return answer{Type: "com.amazonaws.sqs#" + code, status: status}
}

func (a *answer) take(e entry) {
	sum := md5.Sum([]byte(e.MessageBody))
	a.Successful = append(a.Successful, taken{e.ID, "m-" + e.ID, hex.EncodeToString(sum[:])})
}

func (a *answer) fail(e entry, code string, sender bool) {
	a.Failed = append(a.Failed, failure{e.ID, code, "because", sender})
}

// queue is SQS without a network: it is the HTTP client of the real SDK.
type queue struct {
	t        *testing.T
	answer   func(request) answer // nil takes everything
	mu       sync.Mutex
	requests []request
}

func (q *queue) Do(r *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(r.Body)
	var in request
	if err == nil {
		err = json.Unmarshal(raw, &in)
	}
	if err != nil || r.Header.Get("X-Amz-Target") != "AmazonSQS.SendMessageBatch" {
		q.t.Errorf("SQS was asked for %q: %v", r.Header.Get("X-Amz-Target"), err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests = append(q.requests, in)
	out := answer{}
	if q.answer != nil {
		out = q.answer(in)
	} else {
		for _, e := range in.Entries {
			out.take(e)
		}
	}
	if out.status == -1 {
		return nil, io.ErrUnexpectedEOF
	}
	body, err := json.Marshal(out)
	header := http.Header{"Content-Type": {"application/x-amz-json-1.0"}}
	return &http.Response{StatusCode: max(out.status, 200), Header: header, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, err
}

// entries are all that arrived, in any order.
func (q *queue) entries() []entry {
	var all []entry
	for _, r := range q.requests {
		all = append(all, r.Entries...)
	}
	return all
}

func (q *queue) sender() *jobs.Queues {
	client := sqs.New(sqs.Options{
		Region: "ap-northeast-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
		BaseEndpoint: aws.String("http://127.0.0.1:1"), HTTPClient: q, Retryer: aws.NopRetryer{},
	})
	return &jobs.Queues{
		Client: client, StatusURL: "https://status.example/v1/ai-status", Prefix: artifacts.Prefix,
		URLs: map[string]string{"wf2des": "https://sqs/wf2des", "des2wf": "https://sqs/des2wf", "code2wf": "https://sqs/code2wf"},
	}
}

func newQueue(t *testing.T, a func(request) answer) *queue { return &queue{t: t, answer: a} }

func runID(i int) string { return fmt.Sprintf("01980000-0000-7000-8000-%012d", i) }

// job is the i-th job, of a wf2des run unless change says otherwise.
func job(i int, change ...func(*lifecycle.Job)) lifecycle.Job {
	j := lifecycle.Job{
		Run: lifecycle.Run{
			Ref: lifecycle.Ref{Kind: lifecycle.WF2Des, ID: runID(i)}, Tenant: lifecycle.Tenant{OrganizationID: 7, ProjectID: 11},
			FigmaFileKey: "file", ScreenID: "screen", WFNodeID: "1:2", Edge: lifecycle.EdgeWF2Des, Attempt: 1,
		},
		Stage: lifecycle.StageParse, Attempt: 1, Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}
	for _, f := range change {
		f(&j)
	}
	return j
}
