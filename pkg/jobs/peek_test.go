package jobs_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"framerun.dev/pkg/jobs"
	"framerun.dev/pkg/lifecycle"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// shelf is a queue as far as a look needs one: what is received is hidden until it is given back. It is the SDK's HTTP client.
type shelf struct {
	messages []string
	hidden   map[string]bool
	receives int
	refuse   string // the operation that fails
}

// Do speaks three operations of SQS's AWS JSON 1.0 protocol.
func (s *shelf) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	var asked struct {
		MaxNumberOfMessages int
		VisibilityTimeout   int
		Entries             []struct {
			ID                string `json:"Id"`
			ReceiptHandle     string
			VisibilityTimeout int
		}
	}
	if err := json.UnmarshalRead(r.Body, &asked); err != nil {
		return nil, err
	}
	operation := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	if operation == s.refuse {
		return s.reply(r, http.StatusBadRequest, map[string]any{"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no"})
	}
	switch operation {
	case "GetQueueAttributes":
		return s.reply(r, http.StatusOK, map[string]any{"Attributes": map[string]string{"ApproximateNumberOfMessages": fmt.Sprint(len(s.messages)),
			"ApproximateNumberOfMessagesNotVisible": "2", "ApproximateNumberOfMessagesDelayed": "1"}})
	case "ReceiveMessage":
		return s.reply(r, http.StatusOK, map[string]any{"Messages": s.receive(asked.MaxNumberOfMessages)})
	case "ChangeMessageVisibilityBatch":
		done := []map[string]string{}
		for _, e := range asked.Entries {
			if e.VisibilityTimeout == 0 {
				delete(s.hidden, e.ReceiptHandle)
			}
			done = append(done, map[string]string{"Id": e.ID})
		}
		return s.reply(r, http.StatusOK, map[string]any{"Successful": done, "Failed": []string{}})
	}
	return nil, fmt.Errorf("%s would change the queue", operation)
}

func (s *shelf) receive(most int) []map[string]any {
	var given []map[string]any
	for _, body := range s.messages {
		if len(given) < most && !s.hidden[body] {
			s.hidden[body] = true
			s.receives++
			sum := md5.Sum([]byte(body))
			given = append(given, map[string]any{"MessageId": "id of " + body, "ReceiptHandle": body, "Body": body, "MD5OfBody": hex.EncodeToString(sum[:]),
				"Attributes": map[string]string{"ApproximateReceiveCount": "3", "SentTimestamp": "1764460000123"}})
		}
	}
	return given
}

func (s *shelf) reply(r *http.Request, status int, body any) (*http.Response, error) {
	raw, err := json.Marshal(body)
	header := http.Header{"Content-Type": {"application/x-amz-json-1.0"}}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(raw)), Request: r}, err
}

func newShelf(messages ...string) *shelf {
	return &shelf{messages: messages, hidden: map[string]bool{}}
}

func clientOf(c sqs.HTTPClient) *sqs.Client {
	return sqs.New(sqs.Options{Region: "x", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
		BaseEndpoint: aws.String("http://127.0.0.1:1"), HTTPClient: c, Retryer: aws.NopRetryer{}})
}

// Catches a look that leaves messages hidden from workers, shows one twice, receives more than it was asked for, or consumes anything.
func TestPeek(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 10, 23, 100} {
		s := newShelf()
		for i := range 25 {
			s.messages = append(s.messages, fmt.Sprint("message ", i))
		}
		p, err := jobs.Peek(t.Context(), clientOf(s), "https://q/1", limit)
		if err != nil {
			t.Fatal(err)
		}
		var bodies []string
		for _, m := range p.Messages {
			bodies = append(bodies, m.Body)
		}
		if want := s.messages[:min(limit, 25)]; !slices.Equal(bodies, want) || s.receives != len(want) {
			t.Errorf("asked for %d: saw %v in %d receives", limit, bodies, s.receives)
		}
		if len(s.hidden) > 0 {
			t.Errorf("asked for %d: still hidden are %v", limit, s.hidden)
		}
		if m := p.Messages[0]; m.Receives != 3 || m.SentAt.UnixMilli() != 1764460000123 || m.ID != "id of message 0" || p.Visible != 25 || p.InFlight != 2 || p.Delayed != 1 {
			t.Errorf("read as %+v of %+v", m, p)
		}
	}
}

// Catches a look that is broken off and keeps what it took.
func TestPeekGivesBackWhenItIsBrokenOff(t *testing.T) {
	t.Parallel()
	s := newShelf("a", "b")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	interrupted := clientOf(do(func(r *http.Request) (*http.Response, error) {
		response, err := s.Do(r)
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "ReceiveMessage") {
			cancel()
		}
		return response, err
	}))
	if _, err := jobs.Peek(ctx, interrupted, "https://q/1", 10); !errors.Is(err, lifecycle.ErrUnavailable) {
		t.Errorf("broken off: %v", err)
	}
	if s.receives != 2 || len(s.hidden) > 0 {
		t.Errorf("%d were received, and %v are hidden", s.receives, s.hidden)
	}
	for _, operation := range []string{"GetQueueAttributes", "ReceiveMessage", "ChangeMessageVisibilityBatch"} {
		s.refuse = operation
		if _, err := jobs.Peek(t.Context(), clientOf(s), "https://q/1", 10); !errors.Is(err, jobs.ErrNoQueue) {
			t.Errorf("%s of a queue that is gone: %v", operation, err)
		}
	}
}

type do func(*http.Request) (*http.Response, error)

func (f do) Do(r *http.Request) (*http.Response, error) { return f(r) }
