package sqs

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// QueueAttributes are a queue's settings in the words of SQS, e.g.
// {"VisibilityTimeout": "30"}; times are in seconds. What is not told has
// SQS' own default.
type QueueAttributes map[string]string

// Redrive is the RedrivePolicy that moves a message to the dead-letter queue
// with that ARN when it would be received once more than maxReceives times.
func Redrive(deadLetterARN string, maxReceives int) string {
	// A struct of a string and a number always marshals.
	text, _ := json.Marshal(redrive{deadLetterARN, maxReceives})
	return string(text)
}

type redrive struct {
	Target      string `json:"deadLetterTargetArn"`
	MaxReceives int    `json:"maxReceiveCount"`
}

// numbers are the settings that count something.
var numbers = map[string]struct{ low, high, standard int }{
	"DelaySeconds":                  {0, 900, 0},
	"MaximumMessageSize":            {1024, sizeLimit, sizeLimit},
	"MessageRetentionPeriod":        {60, 1209600, 345600},
	"ReceiveMessageWaitTimeSeconds": {0, 20, 0},
	"VisibilityTimeout":             {0, 43200, 30},
}

// inert settings are kept and shown; nothing follows from them here.
var inert = []string{"KmsDataKeyReusePeriodSeconds", "KmsMasterKeyId", "Policy", "RedriveAllowPolicy", "SqsManagedSseEnabled"}

func standard() QueueAttributes {
	a := QueueAttributes{}
	for name, n := range numbers {
		a[name] = strconv.Itoa(n.standard)
	}
	return a
}

// checked gives the settings in the form in which they are kept.
func (s *Server) checked(told QueueAttributes) (QueueAttributes, error) {
	kept := QueueAttributes{}
	for _, name := range slices.Sorted(maps.Keys(told)) {
		value, err := s.checkedValue(name, told[name])
		if err != nil {
			return nil, err
		}
		kept[name] = value
	}
	return kept, nil
}

func (s *Server) checkedValue(name, value string) (string, error) {
	limit, number := numbers[name]
	switch {
	case number:
		n, err := strconv.Atoi(value)
		if err != nil || n < limit.low || n > limit.high {
			return "", refuse("InvalidAttributeValue", "Invalid value for the parameter %s.", name)
		}
		return strconv.Itoa(n), nil
	case name == "RedrivePolicy":
		return s.checkedRedrive(value)
	case slices.Contains(inert, name):
		return value, nil
	}
	return "", refuse("InvalidAttributeName", "Unknown Attribute %s.", name)
}

// checkedRedrive takes the count as a number or as a string, as SQS does. An
// empty policy ends the redriving.
func (s *Server) checkedRedrive(policy string) (string, error) {
	if policy == "" {
		return "", nil
	}
	var told struct {
		Target      string         `json:"deadLetterTargetArn"`
		MaxReceives jsontext.Value `json:"maxReceiveCount"`
	}
	err := json.Unmarshal([]byte(policy), &told)
	if err != nil {
		return "", invalid("RedrivePolicy", policy, "Redrive policy is not valid JSON.")
	}
	n, err := strconv.Atoi(strings.Trim(string(told.MaxReceives), `"`))
	if err != nil || n < 1 || n > 1000 {
		return "", invalid("RedrivePolicy", policy, "Invalid value for maxReceiveCount: it must be between 1 and 1000.")
	}
	if s.byARN(told.Target) == nil {
		return "", invalid("RedrivePolicy", policy, "Dead letter target does not exist.")
	}
	return Redrive(told.Target, n), nil
}

func (s *Server) byARN(arn string) *queue {
	name, ok := strings.CutPrefix(arn, s.QueueARN(""))
	if !ok {
		return nil
	}
	return s.queues[name]
}

// set changes what is told and leaves the rest.
func (q *queue) set(told QueueAttributes) {
	maps.Copy(q.attributes, told)
	maps.DeleteFunc(q.attributes, func(_, value string) bool { return value == "" })
	q.modified = time.Now()
}

func (q *queue) number(name string) int {
	// Only numbers pass checked.
	n, _ := strconv.Atoi(q.attributes[name])
	return n
}

func (q *queue) seconds(name string) time.Duration {
	return time.Duration(q.number(name)) * time.Second
}

// redrive is the queue's policy: without a target when it has none.
func (q *queue) redrive() (r redrive) {
	if policy := q.attributes["RedrivePolicy"]; policy != "" {
		// Only well-formed policies pass checkedRedrive.
		_ = json.Unmarshal([]byte(policy), &r)
	}
	return r
}

// measure gives the read-only attributes as they are now.
func (s *Server) measure(q *queue, now time.Time) QueueAttributes {
	var visible, delayed, inFlight int
	for _, m := range q.messages {
		switch {
		case !m.VisibleAt.After(now):
			visible++
		case m.Receives == 0:
			delayed++
		default:
			inFlight++
		}
	}
	return QueueAttributes{
		"ApproximateNumberOfMessages":           strconv.Itoa(visible),
		"ApproximateNumberOfMessagesDelayed":    strconv.Itoa(delayed),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(inFlight),
		"CreatedTimestamp":                      strconv.FormatInt(q.created.Unix(), 10),
		"LastModifiedTimestamp":                 strconv.FormatInt(q.modified.Unix(), 10),
		"QueueArn":                              s.QueueARN(q.name),
	}
}

type queueAttributesIn struct {
	QueueURL       string `json:"QueueUrl"`
	AttributeNames []string
}

type queueAttributesOut struct {
	Attributes QueueAttributes `json:",omitempty"`
}

func (s *Server) queueAttributes(_ context.Context, in queueAttributesIn) (queueAttributesOut, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(in.QueueURL)
	if err != nil {
		return queueAttributesOut{}, err
	}
	all := s.measure(q, time.Now())
	maps.Copy(all, q.attributes)
	if slices.Contains(in.AttributeNames, "All") {
		return queueAttributesOut{all}, nil
	}
	chosen := QueueAttributes{}
	for _, name := range in.AttributeNames {
		value, ok := all[name]
		if !ok && name != "RedrivePolicy" && !slices.Contains(inert, name) {
			return queueAttributesOut{}, refuse("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
		if ok {
			chosen[name] = value
		}
	}
	return queueAttributesOut{chosen}, nil
}

type setQueueAttributesIn struct {
	QueueURL   string `json:"QueueUrl"`
	Attributes QueueAttributes
}

func (s *Server) setQueueAttributes(_ context.Context, in setQueueAttributesIn) (empty, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(in.QueueURL)
	if err != nil {
		return empty{}, err
	}
	told, err := s.checked(in.Attributes)
	if err != nil {
		return empty{}, err
	}
	q.set(told)
	return empty{}, nil
}
