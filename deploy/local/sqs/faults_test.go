package sqs_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"framerun.dev/deploy/local/sqs"
	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
)

func TestDownAnswers500UntilHealed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.SetFaults(sqs.Faults{Down: true})
	_, err := b.client.SendMessage(b.ctx, &sdk.SendMessageInput{QueueUrl: b.queue, MessageBody: aws.String("x")})
	b.wantCode(err, "InternalFailure")
	b.equal("accepted", len(b.server.Log()), 0)
	b.server.SetFaults(sqs.Faults{})
	b.send("x")
}

func TestThrottlingEndsAndTheSDKRetriesThroughIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.SetFaults(sqs.Faults{Throttle: 1})
	_, err := b.client.SendMessage(b.ctx, &sdk.SendMessageInput{QueueUrl: b.queue, MessageBody: aws.String("x")})
	wantError[*types.RequestThrottled](b, err)
	b.server.SetFaults(sqs.Faults{Throttle: 1})
	_, err = b.retrying(2).SendMessage(b.ctx, &sdk.SendMessageInput{QueueUrl: b.queue, MessageBody: aws.String("x")})
	if err != nil {
		t.Error(err)
	}
}

func TestFaultsKeepToTheirOperations(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.SetFaults(sqs.Faults{Down: true, Operations: []string{"ReceiveMessage"}})
	b.send("x")
	_, err := b.client.ReceiveMessage(b.ctx, &sdk.ReceiveMessageInput{QueueUrl: b.queue})
	b.wantCode(err, "InternalFailure")
}

func TestHangingRequestIsServedWhenTheFaultIsLifted(t *testing.T) {
	t.Parallel()
	reached, left := make(chan struct{}), make(chan struct{}, 2)
	b := newBenchBehind(t, announce("SendMessage", reached, left))
	b.server.SetFaults(sqs.Faults{Hang: true})
	hurried, hangUp := context.WithCancel(b.ctx)
	go func() {
		<-reached
		hangUp()
	}()
	if _, err := b.client.SendMessage(hurried, &sdk.SendMessageInput{QueueUrl: b.queue, MessageBody: aws.String("hurried")}); err == nil {
		t.Error("a hanging server answered")
	}
	<-left
	sent := make(chan error, 1)
	go func() {
		_, err := b.client.SendMessage(b.ctx, &sdk.SendMessageInput{QueueUrl: b.queue, MessageBody: aws.String("patient")})
		sent <- err
	}()
	<-reached
	b.server.SetFaults(sqs.Faults{})
	if err := <-sent; err != nil {
		t.Error(err)
	}
	b.equal("accepted", len(b.server.Log()), 1)
	b.equal("body", b.server.Log()[0].Body, "patient")
}

func TestResetComesAfterTheMessageWasAccepted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.SetFaults(sqs.Faults{Reset: 1})
	_, err := b.client.SendMessage(b.ctx, &sdk.SendMessageInput{QueueUrl: b.queue, MessageBody: aws.String("x")})
	if err == nil || !strings.Contains(err.Error(), "reset by peer") {
		t.Errorf("got %v, want a reset connection", err)
	}
	b.equal("accepted", len(b.server.Log()), 1)

	b.server.SetFaults(sqs.Faults{Reset: 1})
	if _, err := b.retrying(2).SendMessage(b.ctx, &sdk.SendMessageInput{QueueUrl: b.queue, MessageBody: aws.String("y")}); err != nil {
		t.Error(err)
	}
	b.equal("accepted, the retried one twice", len(b.server.Log()), 3)
}

func TestChosenEntriesFailInsideA200(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.SetFaults(sqs.Faults{FailEntry: func(queue, body string) bool { return queue == "jobs" && body == "unlucky" }})
	out := b.batch(entry("a", "lucky"), entry("b", "unlucky"))
	b.equal("successful", *out.Successful[0].Id, "a")
	b.equal("failed", *out.Failed[0].Id, "b")
	b.equal("sender's fault", out.Failed[0].SenderFault, false)
	b.equal("accepted", len(b.server.Log()), 1)
}

func TestPoisonIsRefusedHoweverItIsSent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.SetFaults(sqs.Faults{RefuseBody: func(_, body string) bool { return strings.Contains(body, "poison") }})
	_, err := b.client.SendMessage(b.ctx, &sdk.SendMessageInput{QueueUrl: b.queue, MessageBody: aws.String("poison")})
	wantError[*types.InvalidMessageContents](b, err)
	out := b.batch(entry("a", "water"), entry("b", "poison"))
	b.equal("failed", *out.Failed[0].Id, "b")
	b.equal("sender's fault", out.Failed[0].SenderFault, true)
	b.equal("accepted", len(b.server.Log()), 1)
}

func TestDuplicatesAreDeliveredApartAndLoggedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.SetFaults(sqs.Faults{Duplicates: 2})
	sent := b.send("x")
	got := b.poll(b.queue)
	b.equal("deliveries", len(got), 3)
	for _, m := range got {
		b.equal("id", *m.MessageId, *sent.MessageId)
	}
	must[*sdk.DeleteMessageOutput](b)(b.client.DeleteMessage(b.ctx, &sdk.DeleteMessageInput{QueueUrl: b.queue, ReceiptHandle: got[0].ReceiptHandle}))
	b.equal("copies left", len(b.server.Peek("jobs")), 2)
	b.equal("accepted", len(b.server.Log()), 1)
}

func TestExtraDelayHidesAMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.SetFaults(sqs.Faults{Delay: time.Hour})
	b.send("x")
	b.none(b.queue)
	b.equal("delayed", b.attribute("ApproximateNumberOfMessagesDelayed"), "1")
}

func TestLogKeepsWhatWasAccepted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	before := time.Now()
	sent := must[*sdk.SendMessageOutput](b)(b.client.SendMessage(b.ctx, &sdk.SendMessageInput{
		QueueUrl: b.queue, MessageBody: aws.String("x"), MessageGroupId: aws.String("7"),
		MessageAttributes: map[string]types.MessageAttributeValue{"kind": text("code2wf")},
	}))
	must[*sdk.PurgeQueueOutput](b)(b.client.PurgeQueue(b.ctx, &sdk.PurgeQueueInput{QueueUrl: b.queue}))
	log := b.server.Log()
	if len(log) != 1 {
		t.Fatalf("%d messages in the log, want 1", len(log))
	}
	if at := log[0].SentAt; at.Before(before) || at.After(time.Now()) {
		t.Errorf("sent at %v", at)
	}
	log[0].SentAt, log[0].VisibleAt = time.Time{}, time.Time{}
	want := sqs.Message{
		Queue: "jobs", ID: *sent.MessageId, Body: "x", GroupID: "7",
		Attributes: map[string]sqs.Attribute{"kind": {DataType: "String", StringValue: "code2wf"}},
	}
	if diff := cmp.Diff(want, log[0]); diff != "" {
		t.Error(diff)
	}
}

func TestLongPollWakes(t *testing.T) {
	t.Parallel()
	for name, appear := range map[string]func(*bench, types.Message){
		"when a message is sent":       func(b *bench, _ types.Message) { b.send("y") },
		"when a message is handed on":  func(b *bench, taken types.Message) { b.hide(taken, 0) },
		"when the queue is taken away": func(b *bench, _ types.Message) { b.deleteQueue() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			polling := make(chan struct{}, 1)
			b := newBenchBehind(t, announce("ReceiveMessage", polling, nil))
			b.send("x")
			taken := b.one(b.queue)
			<-polling
			woken := make(chan struct{})
			go func() {
				defer close(woken)
				// What it wakes to differs; that it wakes is the point.
				_, _ = b.client.ReceiveMessage(b.ctx, &sdk.ReceiveMessageInput{QueueUrl: b.queue, WaitTimeSeconds: 20})
			}()
			<-polling
			appear(b, taken)
			select {
			case <-woken:
			case <-time.After(5 * time.Second):
				t.Error("the poll slept on")
			}
		})
	}
}

func TestHungUpPollerTakesNothingWithIt(t *testing.T) {
	t.Parallel()
	polling, left := make(chan struct{}), make(chan struct{})
	b := newBenchBehind(t, announce("ReceiveMessage", polling, left))
	impatient, hangUp := context.WithCancel(b.ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		// The error is the hanging up itself.
		_, _ = b.client.ReceiveMessage(impatient, &sdk.ReceiveMessageInput{QueueUrl: b.queue, WaitTimeSeconds: 20})
	}()
	<-polling
	hangUp()
	<-gone
	select {
	case <-left:
	case <-time.After(5 * time.Second):
		t.Fatal("the server did not notice that the poller hung up")
	}
	b.send("x")
	b.equal("deliveries so far", b.server.Peek("jobs")[0].Receives, 0)
}

func TestMessageTakenForAGoneClientIsVisibleAgain(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]struct {
		writer http.ResponseWriter
		gone   bool
	}{
		"context ended": {writer: httptest.NewRecorder(), gone: true},
		"write failed":  {writer: &brokenWriter{header: http.Header{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.send("x")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if broken.gone {
				cancel()
			}
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(`{"QueueUrl":"`+*b.queue+`"}`))
			r.Header.Set("X-Amz-Target", "AmazonSQS.ReceiveMessage")
			b.server.ServeHTTP(broken.writer, r)
			b.equal("receive count", b.one(b.queue, now).Attributes["ApproximateReceiveCount"], "1")
		})
	}
}

func TestCloseEndsWaitingPolls(t *testing.T) {
	t.Parallel()
	polling := make(chan struct{})
	b := newBenchBehind(t, announce("ReceiveMessage", polling, nil))
	ended := make(chan error, 1)
	go func() {
		_, err := b.client.ReceiveMessage(b.ctx, &sdk.ReceiveMessageInput{QueueUrl: b.queue, WaitTimeSeconds: 20})
		ended <- err
	}()
	<-polling
	b.server.Close()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the poll outlived the server")
	}
}

func TestUnreadableRequestsAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, c := range map[string]struct{ target, body, want string }{
		"unknown operation":   {"AmazonSQS.Dance", `{}`, "UnknownOperationException"},
		"no JSON":             {"AmazonSQS.ListQueues", `QueueNamePrefix=a`, "SerializationException"},
		"broken UTF-8":        {"AmazonSQS.SendMessage", "{\"QueueUrl\":\"" + *b.queue + "\",\"MessageBody\":\"\xff\"}", "SerializationException"},
		"larger than allowed": {"AmazonSQS.ListQueues", strings.Repeat(" ", 8<<20+1), "RequestEntityTooLarge"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(c.body))
		r.Header.Set("X-Amz-Target", c.target)
		w := httptest.NewRecorder()
		b.server.ServeHTTP(w, r)
		if got := w.Header().Get("x-amzn-query-error"); w.Code != http.StatusBadRequest || got != c.want+";Sender" {
			t.Errorf("%s: got %d %s, want 400 %s", name, w.Code, got, c.want)
		}
	}
}

// announce tells when an operation reaches the server and, if asked, when the
// server is done with it.
func announce(operation string, reached, done chan<- struct{}) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+operation) {
				next.ServeHTTP(w, r)
				return
			}
			reached <- struct{}{}
			next.ServeHTTP(w, r)
			if done != nil {
				done <- struct{}{}
			}
		})
	}
}

// brokenWriter is a connection that broke before the answer.
type brokenWriter struct{ header http.Header }

func (w *brokenWriter) Header() http.Header       { return w.header }
func (w *brokenWriter) WriteHeader(int)           {}
func (w *brokenWriter) Write([]byte) (int, error) { return 0, http.ErrHandlerTimeout }
func (w *brokenWriter) Flush()                    {}
