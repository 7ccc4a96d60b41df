package sqs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"framerun.dev/deploy/local/sqs"
	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
)

// TestConformance holds the stand-in to what the real SDK's users rely on.
// Each check has a server and a queue of its own.
func TestConformance(t *testing.T) {
	for name, check := range checks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(newBench(t))
		})
	}
}

var checks = map[string]func(*bench){
	"create queue gives an address that works": func(b *bench) {
		out := must[*sdk.CreateQueueOutput](b)(b.client.CreateQueue(b.ctx, &sdk.CreateQueueInput{QueueName: aws.String("more")}))
		must[*sdk.SendMessageOutput](b)(b.client.SendMessage(b.ctx, &sdk.SendMessageInput{QueueUrl: out.QueueUrl, MessageBody: aws.String("x")}))
		b.equal("messages in the new queue", len(b.server.Peek("more")), 1)
	},
	"create queue again is the same queue": func(b *bench) {
		b.send("kept")
		out := must[*sdk.CreateQueueOutput](b)(b.client.CreateQueue(b.ctx, &sdk.CreateQueueInput{QueueName: aws.String("jobs")}))
		b.equal("url", *out.QueueUrl, *b.queue)
		b.equal("messages", len(b.server.Peek("jobs")), 1)
	},
	"create queue again with another attribute is refused": func(b *bench) {
		_, err := b.client.CreateQueue(b.ctx, &sdk.CreateQueueInput{QueueName: aws.String("jobs"), Attributes: map[string]string{"VisibilityTimeout": "7"}})
		wantError[*types.QueueNameExists](b, err)
	},
	"a queue name has its alphabet": func(b *bench) {
		_, err := b.client.CreateQueue(b.ctx, &sdk.CreateQueueInput{QueueName: aws.String("two words")})
		b.wantCode(err, "InvalidParameterValue")
	},
	"a FIFO queue is refused rather than faked": func(b *bench) {
		_, err := b.client.CreateQueue(b.ctx, &sdk.CreateQueueInput{QueueName: aws.String("a"), Attributes: map[string]string{"FifoQueue": "true"}})
		wantError[*types.InvalidAttributeName](b, err)
	},
	"a queue is found by name": func(b *bench) {
		out := must[*sdk.GetQueueUrlOutput](b)(b.client.GetQueueUrl(b.ctx, &sdk.GetQueueUrlInput{QueueName: aws.String("jobs")}))
		b.equal("url", *out.QueueUrl, *b.queue)
	},
	"an unknown name is QueueDoesNotExist": func(b *bench) {
		_, err := b.client.GetQueueUrl(b.ctx, &sdk.GetQueueUrlInput{QueueName: aws.String("nowhere")})
		wantError[*types.QueueDoesNotExist](b, err)
		b.wantCode(err, "AWS.SimpleQueueService.NonExistentQueue")
	},
	"an unknown address is QueueDoesNotExist": func(b *bench) {
		_, err := b.client.SendMessage(b.ctx, &sdk.SendMessageInput{QueueUrl: aws.String(*b.queue + "2"), MessageBody: aws.String("x")})
		wantError[*types.QueueDoesNotExist](b, err)
	},
	"queues are listed by prefix and by page": func(b *bench) {
		for _, name := range []string{"a1", "a2", "a3", "b1"} {
			must[string](b)(b.server.CreateQueue(name, nil))
		}
		var names []string
		pages := sdk.NewListQueuesPaginator(b.client, &sdk.ListQueuesInput{QueueNamePrefix: aws.String("a"), MaxResults: aws.Int32(2)})
		for pages.HasMorePages() {
			for _, address := range must[*sdk.ListQueuesOutput](b)(pages.NextPage(b.ctx)).QueueUrls {
				names = append(names, address[strings.LastIndexByte(address, '/')+1:])
			}
		}
		if diff := cmp.Diff([]string{"a1", "a2", "a3"}, names); diff != "" {
			b.Error(diff)
		}
	},
	"a deleted queue is gone": func(b *bench) {
		b.deleteQueue()
		_, err := b.client.ReceiveMessage(b.ctx, &sdk.ReceiveMessageInput{QueueUrl: b.queue})
		wantError[*types.QueueDoesNotExist](b, err)
	},
	"all attributes, with their defaults": func(b *bench) {
		out := must[*sdk.GetQueueAttributesOutput](b)(b.client.GetQueueAttributes(b.ctx, &sdk.GetQueueAttributesInput{
			QueueUrl: b.queue, AttributeNames: []types.QueueAttributeName{"All"},
		}))
		got := out.Attributes
		delete(got, "CreatedTimestamp")
		delete(got, "LastModifiedTimestamp")
		want := map[string]string{
			"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesDelayed": "0", "ApproximateNumberOfMessagesNotVisible": "0",
			"DelaySeconds": "0", "MaximumMessageSize": "1048576", "MessageRetentionPeriod": "345600", "ReceiveMessageWaitTimeSeconds": "0",
			"VisibilityTimeout": "30", "QueueArn": "arn:aws:sqs:us-east-1:000000000000:jobs",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			b.Error(diff)
		}
	},
	"the three counts tell visible, delayed and in flight apart": func(b *bench) {
		b.send("in flight")
		b.one(b.queue)
		b.send("visible")
		b.send("visible too")
		must[*sdk.SendMessageOutput](b)(b.client.SendMessage(b.ctx, &sdk.SendMessageInput{QueueUrl: b.queue, MessageBody: aws.String("delayed"), DelaySeconds: 60}))
		b.equal("visible", b.attribute("ApproximateNumberOfMessages"), "2")
		b.equal("in flight", b.attribute("ApproximateNumberOfMessagesNotVisible"), "1")
		b.equal("delayed", b.attribute("ApproximateNumberOfMessagesDelayed"), "1")
	},
	"an unknown attribute cannot be read": func(b *bench) {
		_, err := b.client.GetQueueAttributes(b.ctx, &sdk.GetQueueAttributesInput{QueueUrl: b.queue, AttributeNames: []types.QueueAttributeName{"Colour"}})
		wantError[*types.InvalidAttributeName](b, err)
	},
	"attributes can be changed": func(b *bench) {
		must[*sdk.SetQueueAttributesOutput](b)(b.client.SetQueueAttributes(b.ctx, &sdk.SetQueueAttributesInput{
			QueueUrl: b.queue, Attributes: map[string]string{"VisibilityTimeout": "77"},
		}))
		b.equal("visibility timeout", b.attribute("VisibilityTimeout"), "77")
		b.equal("untouched delay", b.attribute("DelaySeconds"), "0")
	},
	"an attribute out of range is refused": func(b *bench) {
		_, err := b.client.SetQueueAttributes(b.ctx, &sdk.SetQueueAttributesInput{
			QueueUrl: b.queue, Attributes: map[string]string{"VisibilityTimeout": "43201"},
		})
		wantError[*types.InvalidAttributeValue](b, err)
		b.equal("visibility timeout", b.attribute("VisibilityTimeout"), "30")
	},
	"a redrive policy needs a queue to go to": func(b *bench) {
		_, err := b.client.SetQueueAttributes(b.ctx, &sdk.SetQueueAttributesInput{
			QueueUrl: b.queue, Attributes: map[string]string{"RedrivePolicy": sqs.Redrive(b.server.QueueARN("nowhere"), 3)},
		})
		b.wantCode(err, "InvalidParameterValue")
	},
	"a redrive policy counts in strings too, and can be taken away": func(b *bench) {
		must[string](b)(b.server.CreateQueue("dead", nil))
		set := func(policy string) {
			must[*sdk.SetQueueAttributesOutput](b)(b.client.SetQueueAttributes(b.ctx, &sdk.SetQueueAttributesInput{
				QueueUrl: b.queue, Attributes: map[string]string{"RedrivePolicy": policy},
			}))
		}
		set(`{"maxReceiveCount": "4", "deadLetterTargetArn": "` + b.server.QueueARN("dead") + `"}`)
		b.equal("policy", b.attribute("RedrivePolicy"), sqs.Redrive(b.server.QueueARN("dead"), 4))
		set("")
		b.equal("policy taken away", b.attribute("RedrivePolicy"), "")
	},
	"purge empties the queue": func(b *bench) {
		b.send("a")
		b.send("b")
		must[*sdk.PurgeQueueOutput](b)(b.client.PurgeQueue(b.ctx, &sdk.PurgeQueueInput{QueueUrl: b.queue}))
		b.none(b.queue)
	},
	"a message arrives whole": func(b *bench) {
		before := time.Now().Truncate(time.Millisecond)
		body := "フレーム \t\r\n \u2028 \U0001F600 \ufffd \x7f {\"a\":\"\\u0008\"} "
		sent := must[*sdk.SendMessageOutput](b)(b.client.SendMessage(b.ctx, &sdk.SendMessageInput{
			QueueUrl: b.queue, MessageBody: &body, MessageGroupId: aws.String("org-1"), MessageAttributes: attributes,
			MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1-2-3")}},
		}))
		got := b.one(b.queue)
		b.equal("id", *got.MessageId, *sent.MessageId)
		b.equal("body", *got.Body, body)
		if diff := cmp.Diff(attributes, got.MessageAttributes, ignoreSerde); diff != "" {
			b.Error(diff)
		}
		b.equal("group", got.Attributes["MessageGroupId"], "org-1")
		b.equal("trace", got.Attributes["AWSTraceHeader"], "Root=1-2-3")
		b.equal("receive count", got.Attributes["ApproximateReceiveCount"], "1")
		for _, name := range []string{"SentTimestamp", "ApproximateFirstReceiveTimestamp"} {
			if at := millis(b, got.Attributes[name]); at.Before(before) || time.Since(at) > time.Minute {
				b.Errorf("%s is %v", name, at)
			}
		}
	},
	"digests are those of an independent server": func(b *bench) {
		sent := must[*sdk.SendMessageOutput](b)(b.client.SendMessage(b.ctx, &sdk.SendMessageInput{
			QueueUrl: b.queue, MessageBody: aws.String("フレーム"), MessageAttributes: attributes,
		}))
		b.equal("body", *sent.MD5OfMessageBody, "c045a24c5320e34c12e67b977870c386")
		b.equal("attributes", *sent.MD5OfMessageAttributes, "4d96d6d589255b4142f76bc493bf9b3d")
		got := b.one(b.queue)
		b.equal("received attributes", *got.MD5OfMessageAttributes, "4d96d6d589255b4142f76bc493bf9b3d")
	},
	"only what is asked for comes along": func(b *bench) {
		must[*sdk.SendMessageOutput](b)(b.client.SendMessage(b.ctx, &sdk.SendMessageInput{QueueUrl: b.queue, MessageBody: aws.String("x"), MessageAttributes: attributes}))
		got := b.one(b.queue, func(in *sdk.ReceiveMessageInput) {
			in.MessageAttributeNames = []string{"ki.*", "attempt"}
			in.MessageSystemAttributeNames = []types.MessageSystemAttributeName{"SentTimestamp"}
		})
		b.equal("attributes", strings.Join(sortedKeys(got.MessageAttributes), " "), "attempt kind")
		b.equal("system attributes", strings.Join(sortedKeys(got.Attributes), " "), "SentTimestamp")
	},
	"an unknown system attribute cannot be asked for": func(b *bench) {
		_, err := b.client.ReceiveMessage(b.ctx, &sdk.ReceiveMessageInput{QueueUrl: b.queue, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"Colour"}})
		wantError[*types.InvalidAttributeName](b, err)
	},
	"what XML 1.0 cannot hold is refused": func(b *bench) {
		for _, c := range []string{"\x00", "\b", "\x1f", "\ufffe", "\uffff"} {
			_, err := b.client.SendMessage(b.ctx, &sdk.SendMessageInput{QueueUrl: b.queue, MessageBody: aws.String("a" + c + "b")})
			wantError[*types.InvalidMessageContents](b, err)
		}
		b.equal("accepted", len(b.server.Log()), 0)
	},
	"an empty message is refused": func(b *bench) {
		_, err := b.client.SendMessage(b.ctx, &sdk.SendMessageInput{QueueUrl: b.queue, MessageBody: aws.String("")})
		b.wantCode(err, "MissingParameter")
	},
	"1 MiB is the most a message weighs, attributes included": func(b *bench) {
		body := strings.Repeat("x", 1<<20-len("kindStringwf2des"))
		in := &sdk.SendMessageInput{QueueUrl: b.queue, MessageBody: &body, MessageAttributes: map[string]types.MessageAttributeValue{"kind": text("wf2des")}}
		must[*sdk.SendMessageOutput](b)(b.client.SendMessage(b.ctx, in))
		in.MessageBody = aws.String(body + "x")
		_, err := b.client.SendMessage(b.ctx, in)
		b.wantCode(err, "InvalidParameterValue")
	},
	"a queue may allow less": func(b *bench) {
		small, err := b.server.CreateQueue("small", sqs.QueueAttributes{"MaximumMessageSize": "1024"})
		if err != nil {
			b.Fatal(err)
		}
		_, err = b.client.SendMessage(b.ctx, &sdk.SendMessageInput{QueueUrl: &small, MessageBody: aws.String(strings.Repeat("x", 1025))})
		b.wantCode(err, "InvalidParameterValue")
	},
	"bad attributes are refused": func(b *bench) {
		for name, value := range map[string]types.MessageAttributeValue{
			"AWS.mine": text("reserved name"), "empty": text(""), "b\u00e4d": text("name"),
			"number": {DataType: aws.String("Number"), StringValue: aws.String("many")},
			"type":   {DataType: aws.String("Text"), StringValue: aws.String("x")},
			"xml":    text("a\bb"),
		} {
			_, err := b.client.SendMessage(b.ctx, &sdk.SendMessageInput{
				QueueUrl: b.queue, MessageBody: aws.String("x"), MessageAttributes: map[string]types.MessageAttributeValue{name: value},
			})
			b.wantCode(err, "InvalidParameterValue")
		}
	},
	"a delayed message comes late": func(b *bench) {
		sent := time.Now()
		must[*sdk.SendMessageOutput](b)(b.client.SendMessage(b.ctx, &sdk.SendMessageInput{QueueUrl: b.queue, MessageBody: aws.String("x"), DelaySeconds: 1}))
		b.none(b.queue)
		b.one(b.queue)
		if waited := time.Since(sent); waited < time.Second {
			b.Errorf("came after %v", waited)
		}
	},
	"a batch goes through entry by entry": func(b *bench) {
		out := b.batch(entry("a", "fine"), entry("b", "bad\b"), entry("c", "fine too"))
		b.equal("successful", len(out.Successful), 2)
		b.equal("failed", len(out.Failed), 1)
		b.equal("failed id", *out.Failed[0].Id, "b")
		b.equal("failed code", *out.Failed[0].Code, "InvalidMessageContents")
		b.equal("sender's fault", out.Failed[0].SenderFault, true)
		b.equal("stored", len(b.server.Peek("jobs")), 2)
	},
	"a batch without entries is refused": func(b *bench) {
		_, err := b.client.SendMessageBatch(b.ctx, &sdk.SendMessageBatchInput{QueueUrl: b.queue, Entries: []types.SendMessageBatchRequestEntry{}})
		wantError[*types.EmptyBatchRequest](b, err)
	},
	"a batch of eleven is refused": func(b *bench) {
		_, err := b.client.SendMessageBatch(b.ctx, &sdk.SendMessageBatchInput{QueueUrl: b.queue, Entries: slices.Repeat([]types.SendMessageBatchRequestEntry{entry("a", "x")}, 11)})
		wantError[*types.TooManyEntriesInBatchRequest](b, err)
	},
	"a batch with one id twice is refused": func(b *bench) {
		_, err := b.client.SendMessageBatch(b.ctx, &sdk.SendMessageBatchInput{QueueUrl: b.queue, Entries: []types.SendMessageBatchRequestEntry{entry("a", "x"), entry("a", "y")}})
		wantError[*types.BatchEntryIdsNotDistinct](b, err)
		b.equal("stored", len(b.server.Peek("jobs")), 0)
	},
	"a batch with an unreadable id is refused": func(b *bench) {
		_, err := b.client.SendMessageBatch(b.ctx, &sdk.SendMessageBatchInput{QueueUrl: b.queue, Entries: []types.SendMessageBatchRequestEntry{entry("a b", "x")}})
		wantError[*types.InvalidBatchEntryId](b, err)
	},
	"a batch weighs 1 MiB at most": func(b *bench) {
		half := strings.Repeat("x", 1<<19)
		b.batch(entry("a", half), entry("b", half))
		_, err := b.client.SendMessageBatch(b.ctx, &sdk.SendMessageBatchInput{QueueUrl: b.queue, Entries: []types.SendMessageBatchRequestEntry{entry("a", half), entry("b", half+"x")}})
		wantError[*types.BatchRequestTooLong](b, err)
	},
	"messages come in the order sent, ten at most": func(b *bench) {
		var want []string
		for i := range 12 {
			body := string(rune('a' + i))
			b.send(body)
			want = append(want, body)
		}
		first, second := bodies(b.poll(b.queue)), bodies(b.poll(b.queue))
		b.equal("first poll", len(first), 10)
		if diff := cmp.Diff(want, slices.Concat(first, second)); diff != "" {
			b.Error(diff)
		}
	},
	"one message unless more are asked for": func(b *bench) {
		b.send("a")
		b.send("b")
		b.equal("received", len(b.poll(b.queue, func(in *sdk.ReceiveMessageInput) { in.MaxNumberOfMessages = 0 })), 1)
	},
	"eleven messages cannot be asked for": func(b *bench) {
		_, err := b.client.ReceiveMessage(b.ctx, &sdk.ReceiveMessageInput{QueueUrl: b.queue, MaxNumberOfMessages: 11})
		b.wantCode(err, "InvalidParameterValue")
	},
	"nobody waits longer than twenty seconds": func(b *bench) {
		_, err := b.client.ReceiveMessage(b.ctx, &sdk.ReceiveMessageInput{QueueUrl: b.queue, WaitTimeSeconds: 21})
		b.wantCode(err, "InvalidParameterValue")
	},
	"a long poll ends empty after its time": func(b *bench) {
		began := time.Now()
		b.equal("received", len(b.poll(b.queue, func(in *sdk.ReceiveMessageInput) { in.WaitTimeSeconds = 1 })), 0)
		if waited := time.Since(began); waited < time.Second {
			b.Errorf("waited %v", waited)
		}
	},
	"the queue's own wait counts when none is told": func(b *bench) {
		slow := must[string](b)(b.server.CreateQueue("slow", sqs.QueueAttributes{"ReceiveMessageWaitTimeSeconds": "1"}))
		began := time.Now()
		b.poll(&slow, now)
		if waited := time.Since(began); waited < time.Second {
			b.Errorf("waited %v", waited)
		}
	},
	"a message in flight is hidden, then comes again": func(b *bench) {
		b.send("x")
		first := b.one(b.queue, hiddenFor(1))
		b.none(b.queue)
		again := b.one(b.queue)
		b.equal("id", *again.MessageId, *first.MessageId)
		b.equal("receive count", again.Attributes["ApproximateReceiveCount"], "2")
		b.equal("first received", again.Attributes["ApproximateFirstReceiveTimestamp"], first.Attributes["ApproximateFirstReceiveTimestamp"])
	},
	"a deleted message does not come again": func(b *bench) {
		b.send("x")
		got := b.one(b.queue)
		for range 2 { // the second time there is nothing left, which is fine
			must[*sdk.DeleteMessageOutput](b)(b.client.DeleteMessage(b.ctx, &sdk.DeleteMessageInput{QueueUrl: b.queue, ReceiptHandle: got.ReceiptHandle}))
		}
		b.equal("left", len(b.server.Peek("jobs")), 0)
	},
	"an older receipt deletes nothing": func(b *bench) {
		b.send("x")
		old := b.one(b.queue, hiddenFor(1))
		b.one(b.queue)
		must[*sdk.DeleteMessageOutput](b)(b.client.DeleteMessage(b.ctx, &sdk.DeleteMessageInput{QueueUrl: b.queue, ReceiptHandle: old.ReceiptHandle}))
		b.equal("left", len(b.server.Peek("jobs")), 1)
	},
	"a made-up receipt is refused": func(b *bench) {
		_, err := b.client.DeleteMessage(b.ctx, &sdk.DeleteMessageInput{QueueUrl: b.queue, ReceiptHandle: aws.String("made up")})
		wantError[*types.ReceiptHandleIsInvalid](b, err)
	},
	"a receipt of another queue is refused": func(b *bench) {
		other := must[string](b)(b.server.CreateQueue("other", nil))
		b.send("x")
		_, err := b.client.DeleteMessage(b.ctx, &sdk.DeleteMessageInput{QueueUrl: &other, ReceiptHandle: b.one(b.queue).ReceiptHandle})
		wantError[*types.ReceiptHandleIsInvalid](b, err)
	},
	"deletes in a batch are told apart": func(b *bench) {
		b.send("x")
		out := must[*sdk.DeleteMessageBatchOutput](b)(b.client.DeleteMessageBatch(b.ctx, &sdk.DeleteMessageBatchInput{QueueUrl: b.queue, Entries: []types.DeleteMessageBatchRequestEntry{
			{Id: aws.String("good"), ReceiptHandle: b.one(b.queue).ReceiptHandle},
			{Id: aws.String("bad"), ReceiptHandle: aws.String("made up")},
		}}))
		b.equal("successful", *out.Successful[0].Id, "good")
		b.equal("failed", *out.Failed[0].Id, "bad")
		b.equal("failed code", *out.Failed[0].Code, "ReceiptHandleIsInvalid")
		b.equal("left", len(b.server.Peek("jobs")), 0)
	},
	"visibility zero hands a message on at once": func(b *bench) {
		b.send("x")
		b.hide(b.one(b.queue), 0)
		b.equal("receive count", b.one(b.queue, now).Attributes["ApproximateReceiveCount"], "2")
	},
	"visibility can be prolonged": func(b *bench) {
		b.send("x")
		b.hide(b.one(b.queue, hiddenFor(1)), 600)
		if hidden := time.Until(b.server.Peek("jobs")[0].VisibleAt); hidden < 590*time.Second {
			b.Errorf("hidden for %v", hidden)
		}
	},
	"visibility of a message that is not in flight stays": func(b *bench) {
		b.send("x")
		got := b.one(b.queue)
		b.hide(got, 0)
		_, err := b.client.ChangeMessageVisibility(b.ctx, &sdk.ChangeMessageVisibilityInput{QueueUrl: b.queue, ReceiptHandle: got.ReceiptHandle, VisibilityTimeout: 10})
		wantError[*types.MessageNotInflight](b, err)
	},
	"visibility of a deleted message cannot change": func(b *bench) {
		b.send("x")
		got := b.one(b.queue)
		must[*sdk.DeleteMessageOutput](b)(b.client.DeleteMessage(b.ctx, &sdk.DeleteMessageInput{QueueUrl: b.queue, ReceiptHandle: got.ReceiptHandle}))
		_, err := b.client.ChangeMessageVisibility(b.ctx, &sdk.ChangeMessageVisibilityInput{QueueUrl: b.queue, ReceiptHandle: got.ReceiptHandle, VisibilityTimeout: 10})
		b.wantCode(err, "InvalidParameterValue")
	},
	"visibility in a batch is told apart": func(b *bench) {
		b.send("x")
		out := must[*sdk.ChangeMessageVisibilityBatchOutput](b)(b.client.ChangeMessageVisibilityBatch(b.ctx, &sdk.ChangeMessageVisibilityBatchInput{QueueUrl: b.queue, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
			{Id: aws.String("good"), ReceiptHandle: b.one(b.queue).ReceiptHandle, VisibilityTimeout: 0},
			{Id: aws.String("bad"), ReceiptHandle: aws.String("made up"), VisibilityTimeout: 0},
		}}))
		b.equal("successful", *out.Successful[0].Id, "good")
		b.equal("failed", *out.Failed[0].Id, "bad")
		b.one(b.queue, now)
	},
	"a message received too often moves to the dead-letter queue": func(b *bench) {
		dead := must[string](b)(b.server.CreateQueue("dead", nil))
		source := must[string](b)(b.server.CreateQueue("source", sqs.QueueAttributes{"RedrivePolicy": sqs.Redrive(b.server.QueueARN("dead"), 2)}))
		sent := must[*sdk.SendMessageOutput](b)(b.client.SendMessage(b.ctx, &sdk.SendMessageInput{QueueUrl: &source, MessageBody: aws.String("x")}))
		for range 2 {
			got := b.one(&source, now)
			must[*sdk.ChangeMessageVisibilityOutput](b)(b.client.ChangeMessageVisibility(b.ctx, &sdk.ChangeMessageVisibilityInput{QueueUrl: &source, ReceiptHandle: got.ReceiptHandle}))
		}
		b.none(&source)
		got := b.one(&dead, now)
		b.equal("id", *got.MessageId, *sent.MessageId)
		b.equal("source", got.Attributes["DeadLetterQueueSourceArn"], b.server.QueueARN("source"))
		b.equal("left", len(b.server.Peek("source")), 0)
	},
}
