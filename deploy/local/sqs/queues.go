package sqs

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// QueueURL is the address under which clients find the queue of that name.
func (s *Server) QueueURL(name string) string {
	return s.config.Endpoint + "/" + s.config.AccountID + "/" + name
}

// QueueARN names a queue in a redrive policy.
func (s *Server) QueueARN(name string) string {
	return "arn:aws:sqs:" + s.config.Region + ":" + s.config.AccountID + ":" + name
}

// queue is the one a URL means: its last element counts, so that a client
// may reach the server under any host name.
func (s *Server) queue(address string) (*queue, error) {
	u, err := url.Parse(address)
	if err != nil || u.Path == "" {
		return nil, refuse("InvalidAddress", "The address %q is not valid for this endpoint.", address)
	}
	if q := s.queues[path.Base(u.Path)]; q != nil {
		q.tidy(time.Now())
		return q, nil
	}
	return nil, refuse("QueueDoesNotExist", "The specified queue does not exist.")
}

type queueIn struct {
	QueueURL string `json:"QueueUrl"`
}

type queueOut struct {
	QueueURL string `json:"QueueUrl"`
}

// CreateQueue makes a standard queue and gives its URL. Creating it again with
// the same attributes changes nothing; with others it is an error, as is an
// attribute that SQS would not take.
func (s *Server) CreateQueue(name string, attributes QueueAttributes) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.create(name, attributes); err != nil {
		return "", fmt.Errorf("sqs: creating queue %q: %w", name, err)
	}
	return s.QueueURL(name), nil
}

var queueName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

func (s *Server) create(name string, told QueueAttributes) error {
	if !queueName.MatchString(name) {
		return invalid("QueueName", name, "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.")
	}
	told, err := s.checked(told)
	if err != nil {
		return err
	}
	if q := s.queues[name]; q != nil {
		for attribute, value := range told {
			if q.attributes[attribute] != value {
				return refuse("QueueNameExists", "A queue already exists with the same name and a different value for attribute %s.", attribute)
			}
		}
		return nil
	}
	q := &queue{name: name, attributes: standard(), created: time.Now(), changed: make(chan struct{})}
	q.set(told)
	s.queues[name] = q
	return nil
}

type createQueueIn struct {
	QueueName  string
	Attributes QueueAttributes
}

func (s *Server) createQueue(_ context.Context, in createQueueIn) (queueOut, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return queueOut{s.QueueURL(in.QueueName)}, s.create(in.QueueName, in.Attributes)
}

func (s *Server) deleteQueue(_ context.Context, in queueIn) (empty, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(in.QueueURL)
	if err == nil {
		delete(s.queues, q.name)
		q.wake()
	}
	return empty{}, err
}

func (s *Server) purgeQueue(_ context.Context, in queueIn) (empty, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(in.QueueURL)
	if err == nil {
		q.messages = nil
	}
	return empty{}, err
}

type queueURLIn struct{ QueueName string }

func (s *Server) queueURL(_ context.Context, in queueURLIn) (queueOut, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue("/" + in.QueueName)
	if err != nil {
		return queueOut{}, err
	}
	return queueOut{s.QueueURL(q.name)}, nil
}

type listQueuesIn struct {
	QueueNamePrefix string
	MaxResults      int
	NextToken       string
}

type listQueuesOut struct {
	QueueURLs []string `json:"QueueUrls,omitempty"`
	NextToken string   `json:",omitempty"`
}

// listQueues pages by the last name shown, which is the token.
func (s *Server) listQueues(_ context.Context, in listQueuesIn) (listQueuesOut, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.MaxResults < 0 || in.MaxResults > 1000 {
		return listQueuesOut{}, invalid("MaxResults", in.MaxResults, "MaxResults must be >= 1 and <= 1000.")
	}
	var out listQueuesOut
	last := ""
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		if !strings.HasPrefix(name, in.QueueNamePrefix) || name <= in.NextToken {
			continue
		}
		if in.MaxResults > 0 && len(out.QueueURLs) == in.MaxResults {
			out.NextToken = last
			break
		}
		out.QueueURLs = append(out.QueueURLs, s.QueueURL(name))
		last = name
	}
	return out, nil
}
