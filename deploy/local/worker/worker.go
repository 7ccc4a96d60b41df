// Package worker is a scripted AI worker: it takes jobs from SQS, tells progress, leaves artifacts in S3 and reports by signed
// webhooks, as a real one would, but what it makes is made up. It shows worker developers the whole of their side.
package worker

import (
	"context"
	"encoding/json/v2"
	"errors"
	"log/slog"
	"sync"
	"time"

	"framerun.dev/pkg/jobs"
	"framerun.dev/pkg/resultdoc"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Worker works on jobs of all queues, many at a time.
type Worker struct {
	SQS    *sqs.Client
	S3     *s3.Client
	Queues map[string]string // queue URLs
	Bucket string
	Secret string // whsec_…, shared with the suite

	Documents *resultdoc.Documents // where result documents are kept; nil: nowhere
	Pace      time.Duration        // between two words
	Log       *slog.Logger
}

// Run works until ctx ends, then lets go of what it holds: its messages become visible again.
func (w *Worker) Run(ctx context.Context) {
	var working sync.WaitGroup
	for _, queue := range w.Queues {
		working.Go(func() { w.poll(ctx, queue) })
	}
	working.Wait()
}

func (w *Worker) poll(ctx context.Context, queue string) {
	var working sync.WaitGroup
	defer working.Wait()
	for ctx.Err() == nil {
		out, err := w.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 20})
		if err != nil {
			if ctx.Err() == nil {
				w.Log.Warn("queue not readable, trying again", "queue", queue, "error", err)
				pause(ctx, time.Second)
			}
			continue
		}
		for _, m := range out.Messages {
			working.Go(func() { w.take(ctx, queue, m) })
		}
	}
}

// take does one job. The message is deleted when the job is done or nobody wants it any more; otherwise it comes again when its
// visibility timeout is over.
func (w *Worker) take(ctx context.Context, queue string, m types.Message) {
	var job jobs.Message
	if err := json.Unmarshal([]byte(aws.ToString(m.Body)), &job); err != nil || job.Schema != jobs.Schema {
		w.Log.Error("message is no job; it is left to the dead letter queue", "message", aws.ToString(m.MessageId), "error", err)
		return
	}
	log := w.Log.With("run", job.JobID+job.Code2WFID, "stage", job.Stage, "attempt", job.Attempt)
	log.Info("job taken")
	t := task{worker: w, job: job, log: log}
	if err := t.do(ctx); err != nil && !errors.Is(err, errUnwanted) {
		log.Warn("job not done; the message will come again", "error", err)
		return
	}
	_, err := w.SQS.DeleteMessage(context.WithoutCancel(ctx), &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle})
	log.Info("job done", "delete_error", err)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
