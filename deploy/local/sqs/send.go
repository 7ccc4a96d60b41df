package sqs

import (
	"context"
	"time"
	"uuid"
)

type sendIn struct {
	QueueURL string `json:"QueueUrl"`
	draft
}

type sendOut struct {
	MessageID              string `json:"MessageId"`
	BodyDigest             string `json:"MD5OfMessageBody"`
	AttributesDigest       string `json:"MD5OfMessageAttributes,omitempty"`
	SystemAttributesDigest string `json:"MD5OfMessageSystemAttributes,omitempty"`
}

func (s *Server) sendMessage(_ context.Context, in sendIn) (sendOut, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(in.QueueURL)
	if err != nil {
		return sendOut{}, err
	}
	return s.accept(q, in.draft)
}

type sendEntry struct {
	ID string `json:"Id"`
	draft
}

func (e sendEntry) id() string { return e.ID }

type sendBatchIn struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []sendEntry
}

type sentEntry struct {
	ID string `json:"Id"`
	sendOut
}

type sendBatchOut struct {
	Successful []sentEntry `json:",omitempty"`
	Failed     []failure   `json:",omitempty"`
}

// sendMessageBatch refuses the whole batch for its shape and its weight; what
// is wrong with one message fails only that entry.
func (s *Server) sendMessageBatch(_ context.Context, in sendBatchIn) (sendBatchOut, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(in.QueueURL)
	if err == nil {
		err = checkBatch(in.Entries)
	}
	if err != nil {
		return sendBatchOut{}, err
	}
	total := 0
	for _, e := range in.Entries {
		total += e.size()
	}
	if total > sizeLimit {
		return sendBatchOut{}, refuse("BatchRequestTooLong", "Batch requests cannot be longer than %d bytes. You have sent %d bytes.", sizeLimit, total)
	}
	var out sendBatchOut
	for _, e := range in.Entries {
		err := s.faults.failEntry(q.name, e.Body)
		var sent sendOut
		if err == nil {
			sent, err = s.accept(q, e.draft)
		}
		if err != nil {
			out.Failed = append(out.Failed, failed(e.ID, err))
			continue
		}
		out.Successful = append(out.Successful, sentEntry{e.ID, sent})
	}
	return out, nil
}

// accept takes one message in, or says why not.
func (s *Server) accept(q *queue, d draft) (sendOut, error) {
	if err := d.check(); err != nil {
		return sendOut{}, err
	}
	if most := q.number("MaximumMessageSize"); d.size() > most {
		return sendOut{}, refuse("InvalidParameterValue", "One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", most)
	}
	if err := s.faults.refuseBody(q.name, d.Body); err != nil {
		return sendOut{}, err
	}
	m := s.message(q, d)
	s.accepted = append(s.accepted, m)
	for range 1 + s.faults.copies() {
		s.store(q, &stored{Message: m, traceHeader: d.SystemAttributes["AWSTraceHeader"].StringValue})
	}
	return sendOut{
		MessageID:              m.ID,
		BodyDigest:             digest(d.Body),
		AttributesDigest:       digestAttributes(d.Attributes),
		SystemAttributesDigest: digestAttributes(d.SystemAttributes),
	}, nil
}

func (s *Server) message(q *queue, d draft) Message {
	delay := q.seconds("DelaySeconds")
	if d.DelaySeconds != nil {
		delay = time.Duration(*d.DelaySeconds) * time.Second
	}
	now := time.Now()
	return Message{
		Queue:      q.name,
		ID:         uuid.New().String(),
		Body:       d.Body,
		GroupID:    d.GroupID,
		Attributes: d.Attributes,
		SentAt:     now,
		VisibleAt:  now.Add(delay + s.faults.delay()),
	}
}

// store puts a copy at the end of a queue.
func (s *Server) store(q *queue, m *stored) {
	s.sequence++
	m.sequence = s.sequence
	m.Queue = q.name
	q.messages = append(q.messages, m)
	q.wake()
}
