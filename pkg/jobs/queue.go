package jobs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"framerun.dev/pkg/lifecycle"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// batchSize and batchBytes are SQS's own bounds for one SendMessageBatch.
const (
	batchSize  = 10
	batchBytes = 1 << 20
)

// Queues sends jobs to SQS. It is a relay.Sender.
type Queues struct {
	Client    *sqs.Client
	URLs      map[string]string                           // queue URL by "wf2des", "des2wf" and "code2wf"; all may be the same queue
	StatusURL string                                      // where workers send their webhooks
	Prefix    func(run lifecycle.Ref, attempt int) string // where an attempt's artifacts belong
}

// Send delivers each job to its queue, in batches, at the same time. The error at an index is that job's own; a message that SQS
// refuses for what it is wraps lifecycle.ErrUndeliverable.
func (q *Queues) Send(ctx context.Context, jobs []lifecycle.Job) []error {
	errs := make([]error, len(jobs))
	var sending sync.WaitGroup
	for url, batches := range q.pack(jobs, errs) {
		for _, batch := range batches {
			sending.Go(func() { q.sendBatch(ctx, url, batch, errs) })
		}
	}
	sending.Wait()
	return errs
}

// pack composes the messages and sorts them into batches that SQS accepts; entry ids are indexes into jobs.
func (q *Queues) pack(jobs []lifecycle.Job, errs []error) map[string][][]types.SendMessageBatchRequestEntry {
	batches := map[string][][]types.SendMessageBatchRequestEntry{}
	room := map[string]int{} // bytes left in the last batch of each queue
	for i, job := range jobs {
		url := q.URLs[job.Run.Work()]
		entry, size, err := q.entry(i, job)
		if err != nil || size > batchBytes || url == "" {
			errs[i] = fmt.Errorf("jobs: %s of run %s: %d bytes for queue %q: %w", job.Stage, job.Run.ID, size, job.Run.Work(), errors.Join(lifecycle.ErrUndeliverable, err))
			continue
		}
		last := len(batches[url]) - 1
		if last < 0 || len(batches[url][last]) == batchSize || room[url] < size {
			batches[url], room[url] = append(batches[url], nil), batchBytes
			last++
		}
		batches[url][last] = append(batches[url][last], entry)
		room[url] -= size
	}
	return batches
}

func (q *Queues) entry(index int, job lifecycle.Job) (types.SendMessageBatchRequestEntry, int, error) {
	body, err := message(job, q.Prefix(job.Run.Ref, job.Attempt), q.StatusURL).body()
	attributes := map[string]types.MessageAttributeValue{}
	size := len(body)
	for name, value := range map[string]string{"kind": string(job.Run.Kind), "stage": string(job.Stage), "traceparent": job.Traceparent} {
		if value != "" { // SQS refuses empty attributes
			attributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
			size += len(name) + len("String") + len(value)
		}
	}
	return types.SendMessageBatchRequestEntry{
		Id:                aws.String(strconv.Itoa(index)),
		MessageBody:       aws.String(string(body)),
		MessageGroupId:    aws.String(strconv.FormatInt(job.Run.OrganizationID, 10)), // SQS fair queues: no organization starves another
		MessageAttributes: attributes,
	}, size, err
}

// sendBatch sends one batch and writes each entry's own error. A 200 with failed entries is normal: each is looked at.
func (q *Queues) sendBatch(ctx context.Context, url string, batch []types.SendMessageBatchRequestEntry, errs []error) {
	out, err := q.Client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: batch})
	if err != nil {
		q.wholeBatchFailed(ctx, url, batch, errs, err)
		return
	}
	taken := map[string]bool{}
	for _, ok := range out.Successful {
		taken[aws.ToString(ok.Id)] = true
	}
	why := map[string]error{}
	for _, f := range out.Failed {
		why[aws.ToString(f.Id)] = entryError(f)
	}
	for _, entry := range batch {
		id := aws.ToString(entry.Id)
		if i, _ := strconv.Atoi(id); !taken[id] {
			if errs[i] = why[id]; errs[i] == nil {
				errs[i] = errors.New("jobs: SQS did not mention the entry in its answer")
			}
		}
	}
}

// wholeBatchFailed tells each entry of the batch. Where SQS refuses a request for the content of one message, the messages are sent
// one by one, so that the guilty one is found and the others pass.
func (q *Queues) wholeBatchFailed(ctx context.Context, url string, batch []types.SendMessageBatchRequestEntry, errs []error, err error) {
	refused, isAnswer := errors.AsType[smithy.APIError](err)
	guilty := isAnswer && faultOfMessage(refused.ErrorCode())
	if guilty && len(batch) > 1 {
		for i := range batch {
			q.sendBatch(ctx, url, batch[i:i+1], errs)
		}
		return
	}
	if guilty {
		err = errors.Join(lifecycle.ErrUndeliverable, err)
	}
	for _, entry := range batch {
		i, _ := strconv.Atoi(aws.ToString(entry.Id))
		errs[i] = fmt.Errorf("jobs: send to SQS: %w", err)
	}
}

// entryError reads one failed entry.
func entryError(f types.BatchResultErrorEntry) error {
	err := fmt.Errorf("jobs: SQS refused the entry: %s: %s", aws.ToString(f.Code), aws.ToString(f.Message))
	if faultOfMessage(aws.ToString(f.Code)) {
		return errors.Join(lifecycle.ErrUndeliverable, err)
	}
	return err
}

// faultOfMessage recognises what SQS says of a message that it will never take. That the sender is at fault is not enough to give
// up: wrong credentials are the sender's fault too, and are put right one day. Some codes come with the older API's prefix.
func faultOfMessage(code string) bool {
	switch strings.TrimPrefix(code, "AWS.SimpleQueueService.") {
	case "InvalidMessageContents", "InvalidParameterValue", "MessageTooLong", "BatchRequestTooLong":
		return true
	}
	return false
}
