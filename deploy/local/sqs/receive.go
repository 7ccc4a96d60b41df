package sqs

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

type receiveIn struct {
	QueueURL            string `json:"QueueUrl"`
	MaxNumberOfMessages *int
	VisibilityTimeout   *int
	WaitTimeSeconds     *int
	AttributeNames      []string // the older name of the next
	SystemNames         []string `json:"MessageSystemAttributeNames"`
	Names               []string `json:"MessageAttributeNames"`
}

type received struct {
	MessageID        string `json:"MessageId"`
	ReceiptHandle    string
	BodyDigest       string `json:"MD5OfBody"`
	Body             string
	System           map[string]string    `json:"Attributes,omitempty"`
	AttributesDigest string               `json:"MD5OfMessageAttributes,omitempty"`
	Attributes       map[string]Attribute `json:"MessageAttributes,omitempty"`
}

type receiveOut struct {
	Messages []received `json:",omitempty"`
	giveBack func([]received)
}

func (o receiveOut) takeBack() {
	if len(o.Messages) > 0 {
		o.giveBack(o.Messages)
	}
}

// systemNames are what SQS itself knows of a message.
var systemNames = []string{
	"All", "AWSTraceHeader", "ApproximateFirstReceiveTimestamp", "ApproximateReceiveCount", "DeadLetterQueueSourceArn",
	"MessageDeduplicationId", "MessageGroupId", "SenderId", "SentTimestamp", "SequenceNumber",
}

// senderID stands in for the IAM id of whoever sent; nobody signs in here.
const senderID = "AIDALOCAL"

func (in receiveIn) check() error {
	if err := within("MaxNumberOfMessages", in.MaxNumberOfMessages, 1, 10); err != nil {
		return err
	}
	if err := within("VisibilityTimeout", in.VisibilityTimeout, 0, 43200); err != nil {
		return err
	}
	if err := within("WaitTimeSeconds", in.WaitTimeSeconds, 0, 20); err != nil {
		return err
	}
	for _, name := range slices.Concat(in.AttributeNames, in.SystemNames) {
		if !slices.Contains(systemNames, name) {
			return refuse("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
	}
	return nil
}

func within(parameter string, value *int, low, high int) error {
	if value == nil || low <= *value && *value <= high {
		return nil
	}
	return invalid(parameter, *value, "Must be >= "+strconv.Itoa(low)+" and <= "+strconv.Itoa(high)+", if provided.")
}

// receiveMessage looks until there is something, the wait is over, the client
// is gone or the server closes.
func (s *Server) receiveMessage(ctx context.Context, in receiveIn) (receiveOut, error) {
	if err := in.check(); err != nil {
		return receiveOut{}, err
	}
	begin := time.Now()
	for {
		out, pause, err := s.look(in, begin)
		if err != nil || len(out.Messages) > 0 || pause.rest <= 0 {
			return out, err
		}
		timer := time.NewTimer(pause.rest)
		select {
		case <-pause.changed:
		case <-timer.C:
		case <-ctx.Done():
			return receiveOut{}, nil
		case <-s.done:
			return receiveOut{}, nil
		}
		timer.Stop()
	}
}

// pause is how long a poll may rest before it must look again.
type pause struct {
	changed <-chan struct{}
	rest    time.Duration
}

// look takes what is visible now. With nothing there, the pause ends when a
// message appears or the wait that began at begin is over.
func (s *Server) look(in receiveIn, begin time.Time) (receiveOut, pause, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(in.QueueURL)
	if err != nil {
		return receiveOut{}, pause{}, err
	}
	now := time.Now()
	out := receiveOut{giveBack: func(messages []received) { s.giveBack(q, messages) }}
	for _, m := range s.take(q, in, now) {
		out.Messages = append(out.Messages, in.show(q, m))
	}
	wait := q.seconds("ReceiveMessageWaitTimeSeconds")
	if in.WaitTimeSeconds != nil {
		wait = time.Duration(*in.WaitTimeSeconds) * time.Second
	}
	end := begin.Add(wait)
	if !now.Before(end) {
		return out, pause{}, nil
	}
	return out, pause{q.changed, q.nextVisible(end).Sub(now)}, nil
}

// take hides visible messages for the visibility timeout and counts the
// delivery. What was received too often moves to the dead-letter queue.
func (s *Server) take(q *queue, in receiveIn, now time.Time) []*stored {
	most, hidden := 1, q.seconds("VisibilityTimeout")
	if in.MaxNumberOfMessages != nil {
		most = *in.MaxNumberOfMessages
	}
	if in.VisibilityTimeout != nil {
		hidden = time.Duration(*in.VisibilityTimeout) * time.Second
	}
	policy := q.redrive()
	dead := s.byARN(policy.Target)
	var taken, spent []*stored
	for _, m := range q.messages {
		if len(taken) == most {
			break
		}
		switch {
		case m.VisibleAt.After(now):
		case dead != nil && m.Receives >= policy.MaxReceives:
			spent = append(spent, m)
		default:
			m.deliver(now, hidden)
			taken = append(taken, m)
		}
	}
	for _, m := range spent {
		q.remove(m)
		m.source = s.QueueARN(q.name)
		s.store(dead, m)
	}
	return taken
}

func (m *stored) deliver(now time.Time, hidden time.Duration) {
	m.Receives++
	m.VisibleAt = now.Add(hidden)
	if m.Receives == 1 {
		m.firstAt = now
	}
}

// giveBack undoes deliveries that reached nobody, unless another one followed.
func (s *Server) giveBack(q *queue, messages []received) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range messages {
		if m, _ := q.receipt(r.ReceiptHandle); m != nil {
			m.Receives--
			m.VisibleAt = time.Now()
		}
	}
	q.wake()
}

func (in receiveIn) show(q *queue, m *stored) received {
	r := received{
		MessageID:     m.ID,
		ReceiptHandle: q.handle(m),
		BodyDigest:    digest(m.Body),
		Body:          m.Body,
		System:        m.system(slices.Concat(in.AttributeNames, in.SystemNames)),
		Attributes:    map[string]Attribute{},
	}
	for name, a := range m.Attributes {
		if slices.ContainsFunc(in.Names, func(asked string) bool { return asks(asked, name) }) {
			r.Attributes[name] = a
		}
	}
	r.AttributesDigest = digestAttributes(r.Attributes)
	return r
}

// asks tells whether a requested name means this attribute: by name, by
// prefix as in "trace.*", or as one of all.
func asks(asked, name string) bool {
	prefix, wild := strings.CutSuffix(asked, ".*")
	return asked == "All" || asked == name || wild && strings.HasPrefix(name, prefix)
}

// system gives those of SQS' own attributes that are asked for and known.
func (m *stored) system(asked []string) map[string]string {
	all := map[string]string{
		"AWSTraceHeader":                   m.traceHeader,
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.firstAt.UnixMilli(), 10),
		"ApproximateReceiveCount":          strconv.Itoa(m.Receives),
		"DeadLetterQueueSourceArn":         m.source,
		"MessageGroupId":                   m.GroupID,
		"SenderId":                         senderID,
		"SentTimestamp":                    strconv.FormatInt(m.SentAt.UnixMilli(), 10),
	}
	known := map[string]string{}
	for name, value := range all {
		if value != "" && (slices.Contains(asked, "All") || slices.Contains(asked, name)) {
			known[name] = value
		}
	}
	return known
}
