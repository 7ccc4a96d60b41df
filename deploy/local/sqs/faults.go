package sqs

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Faults are ways in which SQS is known to misbehave. The zero value is
// health. Counters count down as they are spent.
type Faults struct {
	// Operations suffer from Down, Hang, Throttle and Reset, e.g.
	// "SendMessageBatch"; with none named, all do.
	Operations []string
	// Down answers 500 InternalFailure.
	Down bool
	// Hang leaves requests without an answer until the fault is lifted or the
	// client leaves. A lifted request is then served.
	Hang bool
	// Throttle answers so many requests with RequestThrottled.
	Throttle int
	// Reset does what so many requests ask for, then cuts the connection in
	// place of the answer.
	Reset int
	// FailEntry chooses entries of a SendMessageBatch that fail inside the 200
	// and are not accepted; trying again may help.
	FailEntry func(queue, body string) bool
	// RefuseBody chooses messages answered with InvalidMessageContents,
	// however often they are sent.
	RefuseBody func(queue, body string) bool
	// Duplicates is how many more times each message accepted from now on is
	// delivered.
	Duplicates int
	// Delay hides each message accepted from now on for longer.
	Delay time.Duration
}

// SetFaults replaces all faults; SetFaults(Faults{}) heals. The functions in
// it are called with the server's lock held and must not call back.
func (s *Server) SetFaults(f Faults) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.now = f
	close(s.faults.changed)
	s.faults.changed = make(chan struct{})
}

type faults struct {
	mu      sync.Mutex
	now     Faults
	changed chan struct{} // closed, and replaced, by SetFaults
	hanging atomic.Int64
}

func (f *Faults) hits(operation string) bool {
	return len(f.Operations) == 0 || slices.Contains(f.Operations, operation)
}

// admit lets a request pass, or refuses it for a fault.
func (s *Server) admit(ctx context.Context, operation string) error {
	for {
		healed, err := s.faults.door(operation)
		if healed == nil {
			return err
		}
		if err := s.hang(ctx, healed); err != nil {
			return err
		}
	}
}

func (s *Server) hang(ctx context.Context, healed <-chan struct{}) error {
	s.faults.hanging.Add(1)
	defer s.faults.hanging.Add(-1)
	select {
	case <-healed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		return refuse("ServiceUnavailable", "The server is closing.")
	}
}

// Hanging is how many requests are left without an answer now.
func (s *Server) Hanging() int { return int(s.faults.hanging.Load()) }

// door gives a channel when the request hangs: closed when to ask again.
func (f *faults) door(operation string) (<-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !f.now.hits(operation):
		return nil, nil
	case f.now.Hang:
		return f.changed, nil
	case f.now.Down:
		return nil, refuse("InternalFailure", "The request processing has failed because of an unknown error, exception or failure.")
	case f.now.Throttle > 0:
		f.now.Throttle--
		return nil, refuse("RequestThrottled", "The request was denied due to request throttling.")
	}
	return nil, nil
}

func (f *faults) spendReset(operation string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now.Reset == 0 || !f.now.hits(operation) {
		return false
	}
	f.now.Reset--
	return true
}

func (f *faults) current() Faults {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *faults) copies() int          { return f.current().Duplicates }
func (f *faults) delay() time.Duration { return f.current().Delay }

func (f *faults) failEntry(queue, body string) error {
	if fails := f.current().FailEntry; fails != nil && fails(queue, body) {
		return refuse("InternalFailure", "The entry could not be stored.")
	}
	return nil
}

func (f *faults) refuseBody(queue, body string) error {
	if refused := f.current().RefuseBody; refused != nil && refused(queue, body) {
		return refuse("InvalidMessageContents", "The message contains characters outside the allowed set.")
	}
	return nil
}

// reset cuts the connection so that the client sees it reset rather than
// closed in good order.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		// Only an already closed connection refuses, which is as good.
		_ = tcp.SetLinger(0)
	}
	// The connection is given up: there is nobody left to tell.
	_ = conn.Close()
}
