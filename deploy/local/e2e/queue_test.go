package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"framerun.dev/deploy/local/sqs"
)

// soon is how quickly a POST must be answered while parts are missing: the queue is not on its path.
const soon = time.Second

// killedBeforeTheJobLeft kills intake while SQS holds on to its request, so that the row is there and nothing else.
func killedBeforeTheJobLeft(t *testing.T, s *suite) {
	s.SQS.SetFaults(sqs.Faults{Operations: []string{"SendMessageBatch"}, Hang: true})
	t.Cleanup(func() { s.SQS.SetFaults(sqs.Faults{}) })
	r := s.create(t)
	eventually(t, 5*time.Second, "intake is sending the job", func() bool { return s.SQS.Hanging() > 0 })
	pid := s.signal(t, "intake", syscall.SIGKILL)
	s.back(t, "intake", pid)
	if n := s.jobs(r, "parse"); n != 0 {
		t.Fatalf("SQS has taken %d messages already: nothing is shown", n)
	}
	s.SQS.SetFaults(sqs.Faults{})
	eventually(t, 5*time.Second, "the job leaves after the restart", func() bool { return s.jobs(r, "parse") > 0 })
}

func queueDown(t *testing.T, s *suite) {
	s.SQS.SetFaults(sqs.Faults{Down: true})
	t.Cleanup(func() { s.SQS.SetFaults(sqs.Faults{}) })
	var runs []run
	for range 25 { // more than two of SQS's batches
		began := time.Now()
		runs = append(runs, s.create(t))
		if took := time.Since(began); took > soon {
			t.Errorf("POST took %s while SQS was down", took)
		}
	}
	eventually(t, 5*time.Second, "intake has met the fault", func() bool {
		return s.number(t, `SELECT count(*) FROM outbox WHERE destination = 'jobs' AND last_error IS NOT NULL`) > 0
	})
	s.SQS.SetFaults(sqs.Faults{})
	for _, r := range runs {
		eventually(t, 10*time.Second, "the backlog drains", func() bool { return s.jobs(r, "parse") > 0 })
	}
	s.emptied(t)
}

// poison lets one message be refused for ever that stands in a batch with good ones.
func poison(t *testing.T, s *suite) {
	s.SQS.SetFaults(sqs.Faults{Down: true})
	t.Cleanup(func() { s.SQS.SetFaults(sqs.Faults{}) })
	before, bad, after := s.create(t), s.create(t), s.create(t)
	s.SQS.SetFaults(sqs.Faults{RefuseBody: func(_, body string) bool { return strings.Contains(body, bad.id) }})

	for _, r := range []run{before, after} {
		eventually(t, 10*time.Second, "the others pass", func() bool { return s.jobs(r, "parse") == 1 })
	}
	eventually(t, 10*time.Second, "the run of the poison ends", func() bool { return s.state(t, bad) == "failed" })
	got := s.ask(t, "GET", bad.self, nil).want(t, 200)
	const sentence = "The request could not be handed to a worker. Please start the generation again."
	if got.text("errorMessage") != sentence {
		t.Errorf("the designer is told %q, want %q", got.text("errorMessage"), sentence)
	}
	if n := s.number(t, `SELECT count(*) FROM outbox WHERE run_id = $1 AND state = 'set_aside'`, bad.id); n != 1 {
		t.Errorf("%d messages set aside for the operator, want 1", n)
	}
	if s.jobs(bad, "parse") != 0 {
		t.Error("SQS has taken the poison: nothing is shown")
	}
	s.emptied(t)
}

// emptied waits until nothing in the outbox waits any more.
func (s *suite) emptied(t *testing.T) {
	t.Helper()
	eventually(t, 10*time.Second, "the outbox is empty", func() bool {
		return s.number(t, `SELECT count(*) FROM outbox WHERE state = 'pending'`) == 0
	})
}
