package jobs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// ErrNoQueue: SQS knows no queue at this URL.
var ErrNoQueue = errors.New("there is no such queue")

// Peeked is what a look at a queue shows. SQS's counts are approximate.
type Peeked struct {
	Visible  int // waiting for a worker, before the look
	InFlight int // taken by a worker and not finished
	Delayed  int
	Messages []PeekedMessage
}

// PeekedMessage is one message as it lies in the queue.
type PeekedMessage struct {
	ID       string
	Body     string
	SentAt   time.Time
	Receives int // how often it has been received, this look included: a dead letter queue counts them too
}

// hidden is how long a message that was looked at is out of everybody's sight if the look dies before it gives it back, or if SQS's answer
// is lost on its way and the SDK asks again.
const hidden = 10 * time.Second

// Peek shows up to limit messages of a queue without consuming them. SQS has no way to look alone: each is received, hidden from workers
// for the moment, and then made visible again. So its receive count rises by one, which a queue with a dead letter queue limits.
//
// Errors: ErrNoQueue, else they wrap lifecycle.ErrUnavailable.
func Peek(ctx context.Context, client *sqs.Client, url string, limit int) (Peeked, error) {
	p, err := count(ctx, client, url)
	if err != nil {
		return p, err
	}
	var taken []types.ChangeMessageVisibilityBatchRequestEntry
	seen := map[string]bool{}
	for len(p.Messages) < limit {
		out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &url, MaxNumberOfMessages: int32(min(limit-len(p.Messages), batchSize)), VisibilityTimeout: int32(hidden / time.Second),
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{"ApproximateReceiveCount", "SentTimestamp"},
		})
		if err != nil {
			return p, errors.Join(queueError(err), giveBack(ctx, client, url, taken))
		}
		fresh := 0
		for _, m := range out.Messages {
			taken = append(taken, types.ChangeMessageVisibilityBatchRequestEntry{Id: new(strconv.Itoa(len(taken))), ReceiptHandle: m.ReceiptHandle})
			if id := aws.ToString(m.MessageId); !seen[id] {
				seen[id], fresh = true, fresh+1
				p.Messages = append(p.Messages, peeked(m))
			}
		}
		if fresh == 0 {
			break
		}
	}
	return p, giveBack(ctx, client, url, taken)
}

func peeked(m types.Message) PeekedMessage {
	receives, _ := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
	sent, _ := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64)
	return PeekedMessage{ID: aws.ToString(m.MessageId), Body: aws.ToString(m.Body), SentAt: time.UnixMilli(sent).UTC(), Receives: receives}
}

func count(ctx context.Context, client *sqs.Client, url string) (p Peeked, err error) {
	out, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{
		"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed",
	}})
	if err != nil {
		return p, queueError(err)
	}
	p.Visible, _ = strconv.Atoi(out.Attributes["ApproximateNumberOfMessages"])
	p.InFlight, _ = strconv.Atoi(out.Attributes["ApproximateNumberOfMessagesNotVisible"])
	p.Delayed, _ = strconv.Atoi(out.Attributes["ApproximateNumberOfMessagesDelayed"])
	return p, nil
}

// giveBack makes messages visible again at once, also when ctx has ended meanwhile.
func giveBack(ctx context.Context, client *sqs.Client, url string, taken []types.ChangeMessageVisibilityBatchRequestEntry) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hidden)
	defer cancel()
	var errs []error
	for len(taken) > 0 {
		n := min(len(taken), batchSize)
		out, err := client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url, Entries: taken[:n]})
		if err != nil {
			errs = append(errs, queueError(err))
		} else if len(out.Failed) > 0 {
			errs = append(errs, fmt.Errorf("jobs: %d messages are out of the workers' sight for %s more", len(out.Failed), hidden))
		}
		taken = taken[n:]
	}
	return errors.Join(errs...)
}

func queueError(err error) error {
	if _, ok := errors.AsType[*types.QueueDoesNotExist](err); ok {
		return ErrNoQueue
	}
	return fmt.Errorf("jobs: look at a queue: %w: %w", lifecycle.ErrUnavailable, err)
}
