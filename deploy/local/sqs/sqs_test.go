package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"

	"framerun.dev/deploy/local/sqs"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// bench is one stand-in with one queue, spoken to by the real SDK.
type bench struct {
	*testing.T
	ctx    context.Context
	server *sqs.Server
	client *sdk.Client
	queue  *string
}

func newBench(t *testing.T) *bench {
	return newBenchBehind(t, func(h http.Handler) http.Handler { return h })
}

// newBenchBehind puts something between the wire and the stand-in.
func newBenchBehind(t *testing.T, wrap func(http.Handler) http.Handler) *bench {
	t.Helper()
	listener := listen(t)
	server := sqs.New(sqs.Config{Endpoint: "http://" + listener.Addr().String()})
	outer := &http.Server{Handler: wrap(server)}
	served := make(chan error, 1)
	go func() { served <- outer.Serve(listener) }()
	t.Cleanup(func() {
		server.Close()
		if err := outer.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("shutting down: %v", err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serving: %v", err)
		}
	})
	address, err := server.CreateQueue("jobs", nil)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{T: t, ctx: t.Context(), server: server, client: newClient(listener.Addr().String(), 1), queue: &address}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000)))
		if err == nil {
			return l
		}
	}
	t.Fatal("no free port between 20000 and 32000")
	return nil
}

func newClient(address string, attempts int) *sdk.Client {
	return sdk.New(sdk.Options{
		Region:           "us-east-1",
		BaseEndpoint:     aws.String("http://" + address),
		Credentials:      credentials.NewStaticCredentialsProvider("local", "local", ""),
		RetryMaxAttempts: attempts,
	})
}

// retrying is a client that tries up to so many times, as production does.
func (b *bench) retrying(attempts int) *sdk.Client {
	options := b.client.Options()
	options.RetryMaxAttempts = attempts
	options.Retryer = nil
	return sdk.New(options)
}

func must[T any](b *bench) func(T, error) T {
	b.Helper()
	return func(v T, err error) T {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
		return v
	}
}

func (b *bench) send(body string) *sdk.SendMessageOutput {
	b.Helper()
	return must[*sdk.SendMessageOutput](b)(b.client.SendMessage(b.ctx, &sdk.SendMessageInput{QueueUrl: b.queue, MessageBody: &body}))
}

// poll receives up to ten messages, waiting up to five seconds for the first.
func (b *bench) poll(queue *string, change ...func(*sdk.ReceiveMessageInput)) []types.Message {
	b.Helper()
	in := &sdk.ReceiveMessageInput{
		QueueUrl: queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 5,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}, MessageAttributeNames: []string{"All"},
	}
	for _, c := range change {
		c(in)
	}
	return must[*sdk.ReceiveMessageOutput](b)(b.client.ReceiveMessage(b.ctx, in)).Messages
}

func (b *bench) one(queue *string, change ...func(*sdk.ReceiveMessageInput)) types.Message {
	b.Helper()
	got := b.poll(queue, change...)
	if len(got) != 1 {
		b.Fatalf("received %d messages, want 1", len(got))
	}
	return got[0]
}

// none asks once, without waiting.
func (b *bench) none(queue *string) {
	b.Helper()
	if got := b.poll(queue, now); len(got) > 0 {
		b.Fatalf("received %d messages, want none", len(got))
	}
}

func now(in *sdk.ReceiveMessageInput) { in.WaitTimeSeconds = 0 }

func hiddenFor(seconds int32) func(*sdk.ReceiveMessageInput) {
	return func(in *sdk.ReceiveMessageInput) { in.VisibilityTimeout = seconds }
}

// attribute reads one attribute of the bench's queue.
func (b *bench) attribute(name types.QueueAttributeName) string {
	b.Helper()
	out := must[*sdk.GetQueueAttributesOutput](b)(b.client.GetQueueAttributes(b.ctx, &sdk.GetQueueAttributesInput{
		QueueUrl: b.queue, AttributeNames: []types.QueueAttributeName{name},
	}))
	return out.Attributes[string(name)]
}

func (b *bench) equal(what string, got, want any) {
	b.Helper()
	if got != want {
		b.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// wantError asks for one of the SDK's error types.
func wantError[E error](b *bench, err error) {
	b.Helper()
	if _, ok := errors.AsType[E](err); !ok {
		b.Errorf("got error %v, want a %T", err, *new(E))
	}
}

// wantCode asks for an error that has a code only.
func (b *bench) wantCode(err error, code string) {
	b.Helper()
	e, ok := errors.AsType[smithy.APIError](err)
	if !ok || e.ErrorCode() != code {
		b.Errorf("got error %v, want code %s", err, code)
	}
}
