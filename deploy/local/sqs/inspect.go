package sqs

import (
	"slices"
	"time"
)

// Peek shows what a queue holds, in order of arrival, without receiving it:
// nothing when there is no such queue.
func (s *Server) Peek(queue string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Message
	if q := s.queues[queue]; q != nil {
		q.tidy(time.Now())
		for _, m := range q.messages {
			all = append(all, m.Message)
		}
	}
	return all
}

// Log is every message ever accepted, in order, whatever became of it: once
// each, however often it is delivered. It grows for the server's whole life.
func (s *Server) Log() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.accepted)
}
