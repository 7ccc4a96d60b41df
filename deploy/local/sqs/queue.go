package sqs

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"time"
)

// queue holds its messages in the order they came. The server's mutex guards
// all of it.
type queue struct {
	name       string
	attributes QueueAttributes
	created    time.Time
	modified   time.Time
	messages   []*stored
	tidied     time.Time
	// changed is closed, and replaced, when a message may have become visible.
	changed chan struct{}
}

// stored is one copy of a message in a queue. Its sequence rises with every
// copy that any queue of the server takes in.
type stored struct {
	Message
	sequence    uint64
	firstAt     time.Time // of the first delivery
	traceHeader string
	source      string // ARN of the queue it failed in, once it is in a dead-letter queue
}

func (q *queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// tidy forgets what has outlived the queue's retention. With many messages that is work, so it is not done for every request.
func (q *queue) tidy(now time.Time) {
	if now.Sub(q.tidied) < 100*time.Millisecond {
		return
	}
	q.tidied = now
	oldest := now.Add(-q.seconds("MessageRetentionPeriod"))
	q.messages = slices.DeleteFunc(q.messages, func(m *stored) bool { return m.SentAt.Before(oldest) })
}

// nextVisible is when the next hidden message appears, or limit if that is
// sooner.
func (q *queue) nextVisible(limit time.Time) time.Time {
	for _, m := range q.messages {
		if m.VisibleAt.Before(limit) {
			limit = m.VisibleAt
		}
	}
	return limit
}

func (q *queue) find(sequence uint64) (int, bool) {
	return slices.BinarySearchFunc(q.messages, sequence, func(m *stored, n uint64) int { return cmp.Compare(m.sequence, n) })
}

// handle is the receipt for the newest delivery of m: worthless after the next.
func (q *queue) handle(m *stored) string {
	return base64.URLEncoding.EncodeToString(fmt.Appendf(nil, "%s %d %d", q.name, m.sequence, m.Receives))
}

// receipt finds the message that a handle was given for: nil without an error
// when that message is gone or was delivered again since.
func (q *queue) receipt(handle string) (*stored, error) {
	var name string
	var sequence uint64
	var delivery int
	text, err := base64.URLEncoding.DecodeString(handle)
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%s %d %d", &name, &sequence, &delivery)
	}
	if err != nil || name != q.name {
		return nil, refuse("ReceiptHandleIsInvalid", "The input receipt handle %q is not a valid receipt handle.", handle)
	}
	if i, ok := q.find(sequence); ok && q.messages[i].Receives == delivery {
		return q.messages[i], nil
	}
	return nil, nil
}

// remove takes m out; it is fine when m left before.
func (q *queue) remove(m *stored) {
	if i, ok := q.find(m.sequence); ok {
		q.messages = slices.Delete(q.messages, i, i+1)
	}
}
