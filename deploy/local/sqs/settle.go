package sqs

import (
	"context"
	"time"
)

// A receiver settles a delivery by its receipt handle: it deletes the message
// or says when it shall be visible again.

type deleteIn struct {
	QueueURL      string `json:"QueueUrl"`
	ReceiptHandle string
}

func (s *Server) deleteMessage(_ context.Context, in deleteIn) (empty, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(in.QueueURL)
	if err != nil {
		return empty{}, err
	}
	return empty{}, q.delete(in.ReceiptHandle)
}

// delete succeeds without effect for a handle that a newer delivery made
// worthless, as SQS does: the receiver cannot tell from the answer.
func (q *queue) delete(handle string) error {
	m, err := q.receipt(handle)
	if m != nil {
		q.remove(m)
	}
	return err
}

type deleteEntry struct {
	ID            string `json:"Id"`
	ReceiptHandle string
}

func (e deleteEntry) id() string { return e.ID }

type deleteBatchIn struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []deleteEntry
}

func (s *Server) deleteMessageBatch(_ context.Context, in deleteBatchIn) (batchOut, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(in.QueueURL)
	if err != nil {
		return batchOut{}, err
	}
	return each(in.Entries, func(e deleteEntry) error { return q.delete(e.ReceiptHandle) })
}

type visibilityIn struct {
	QueueURL          string `json:"QueueUrl"`
	ReceiptHandle     string
	VisibilityTimeout *int
}

func (s *Server) changeVisibility(_ context.Context, in visibilityIn) (empty, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(in.QueueURL)
	if err != nil {
		return empty{}, err
	}
	return empty{}, q.hide(in.ReceiptHandle, in.VisibilityTimeout)
}

// hide keeps a message in flight for so many seconds from now; none shows it
// to the next receiver at once.
func (q *queue) hide(handle string, seconds *int) error {
	if seconds == nil {
		return refuse("MissingParameter", "The request must contain the parameter VisibilityTimeout.")
	}
	if err := within("VisibilityTimeout", seconds, 0, 43200); err != nil {
		return err
	}
	m, err := q.receipt(handle)
	if err != nil {
		return err
	}
	if m == nil {
		return invalid("ReceiptHandle", handle, "Message does not exist or is not available for visibility timeout change.")
	}
	now := time.Now()
	if !m.VisibleAt.After(now) {
		return refuse("MessageNotInflight", "The message referred to is not in flight.")
	}
	m.VisibleAt = now.Add(time.Duration(*seconds) * time.Second)
	q.wake()
	return nil
}

type visibilityEntry struct {
	ID                string `json:"Id"`
	ReceiptHandle     string
	VisibilityTimeout *int
}

func (e visibilityEntry) id() string { return e.ID }

type visibilityBatchIn struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []visibilityEntry
}

func (s *Server) changeVisibilityBatch(_ context.Context, in visibilityBatchIn) (batchOut, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(in.QueueURL)
	if err != nil {
		return batchOut{}, err
	}
	return each(in.Entries, func(e visibilityEntry) error { return q.hide(e.ReceiptHandle, e.VisibilityTimeout) })
}
