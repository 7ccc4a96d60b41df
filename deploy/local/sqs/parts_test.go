package sqs_test

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// attributes are one of each type. Their digest was computed by another
// server, fauxqs 1.9.2.
var attributes = map[string]types.MessageAttributeValue{
	"kind":    text("wf2des"),
	"attempt": {DataType: aws.String("Number.int"), StringValue: aws.String("1")},
	"seal":    {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1, 255}},
}

var ignoreSerde = cmpopts.IgnoreUnexported(types.MessageAttributeValue{})

func text(value string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
}

func entry(id, body string) types.SendMessageBatchRequestEntry {
	return types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &body}
}

func (b *bench) batch(entries ...types.SendMessageBatchRequestEntry) *sdk.SendMessageBatchOutput {
	b.Helper()
	return must[*sdk.SendMessageBatchOutput](b)(b.client.SendMessageBatch(b.ctx, &sdk.SendMessageBatchInput{QueueUrl: b.queue, Entries: entries}))
}

func (b *bench) hide(m types.Message, seconds int32) {
	b.Helper()
	must[*sdk.ChangeMessageVisibilityOutput](b)(b.client.ChangeMessageVisibility(b.ctx, &sdk.ChangeMessageVisibilityInput{
		QueueUrl: b.queue, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds,
	}))
}

func (b *bench) deleteQueue() {
	b.Helper()
	must[*sdk.DeleteQueueOutput](b)(b.client.DeleteQueue(b.ctx, &sdk.DeleteQueueInput{QueueUrl: b.queue}))
}

func bodies(messages []types.Message) []string {
	var all []string
	for _, m := range messages {
		all = append(all, *m.Body)
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func millis(b *bench, text string) time.Time {
	b.Helper()
	return time.UnixMilli(must[int64](b)(strconv.ParseInt(text, 10, 64)))
}
