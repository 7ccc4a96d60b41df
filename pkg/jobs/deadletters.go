package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

const (
	// receiveWait is how long SQS keeps a request for messages open while there are none (its own bound).
	receiveWait = 20 * time.Second
	// receiveSlack is what such a request may take beyond that, so that a connection that hangs is given up.
	receiveSlack = 10 * time.Second
	// lettersHidden is how long a dead letter is nobody else's. After a crash it comes again this much later.
	lettersHidden = 30 * time.Second
)

// DeadLetters is a dead letter queue: messages that workers were given as often as the queue's redrive policy allows, and that nobody
// has done.
type DeadLetters struct {
	Client *sqs.Client
	URL    string
}

// Letter is one dead message. It comes again until it is forgotten.
type Letter struct {
	ID      string  // SQS's own id of the message
	Message Message // zero if it is Broken
	Broken  error   // why it cannot be read; it does not repeat what the message holds

	receipt string
}

// Receive waits a while for dead letters and returns those that came, ten at most.
func (d *DeadLetters) Receive(ctx context.Context) ([]Letter, error) {
	ctx, cancel := context.WithTimeout(ctx, receiveWait+receiveSlack)
	defer cancel()
	out, err := d.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &d.URL, MaxNumberOfMessages: batchSize,
		WaitTimeSeconds: int32(receiveWait.Seconds()), VisibilityTimeout: int32(lettersHidden.Seconds())})
	if err != nil {
		return nil, fmt.Errorf("jobs: receive dead letters: %w", err)
	}
	letters := make([]Letter, len(out.Messages))
	for i, m := range out.Messages {
		letters[i] = Letter{ID: aws.ToString(m.MessageId), receipt: aws.ToString(m.ReceiptHandle)}
		letters[i].Message, letters[i].Broken = ReadMessage([]byte(aws.ToString(m.Body)))
	}
	return letters, nil
}

// Forget takes the letter out of the queue for good.
func (d *DeadLetters) Forget(ctx context.Context, l Letter) error {
	_, err := d.Client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &d.URL, ReceiptHandle: &l.receipt})
	if err != nil {
		return fmt.Errorf("jobs: delete dead letter %s: %w", l.ID, err)
	}
	return nil
}

// Leave keeps the letter in the queue, out of everybody's way for so long (12 hours at most, SQS's own bound).
func (d *DeadLetters) Leave(ctx context.Context, l Letter, hidden time.Duration) error {
	_, err := d.Client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &d.URL, ReceiptHandle: &l.receipt,
		VisibilityTimeout: int32(hidden.Seconds())})
	if err != nil {
		return fmt.Errorf("jobs: leave dead letter %s: %w", l.ID, err)
	}
	return nil
}
