package e2e

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"framerun.dev/deploy/local/stack"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// deadline is short for a person and long for a machine.
const deadline = 3 * time.Second

// TestDeadlines runs a stack whose workers have little time. No worker runs there: the tests speak for it, or keep silent.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	s := start(t, stack.Config{Worker: "none", Env: map[string]map[string]string{"status": {
		"PARSING_DEADLINE": deadline.String(), "ASSEMBLING_DEADLINE": "0", "PROCESSING_DEADLINE": deadline.String(), "CONFIRM_DEADLINE": "0"}}})
	for _, story := range []struct {
		name string
		test func(*testing.T, *suite)
	}{
		{"a silent worker, and one that speaks", silentAndSpeaking},
		{"a person may take her time", personTakesTime},
		{"a job that no worker does", deadJob},
		{"status killed between look and end", reaperKilled},
		{"status frozen between look and end", reaperFrozen},
	} {
		t.Run(story.name, func(t *testing.T) { story.test(t, s) })
	}
}

const tookTooLong = "The generation took too long and was stopped. Please try again."

// silentAndSpeaking begins two runs at the same time. One worker keeps silent and loses its run, whose node is free at once; the other
// reports for twice as long as the deadline and keeps its own.
func silentAndSpeaking(t *testing.T, s *suite) {
	body := draft()
	silent := created(s.ask(t, "POST", collection, body).want(t, 201))
	speaking, began := s.create(t), time.Now()
	talk := map[string]any{"progress": map[string]any{"percent": 10}}
	eventually(t, 4*deadline, "the speaking worker's time is twice over", func() bool {
		if got := s.tell(t, speaking, "progress", talk); got.body["continue"] != true {
			t.Fatalf("a worker that speaks is told %s", got.raw)
		}
		return time.Since(began) > 2*deadline
	})
	got := s.ask(t, "GET", silent.self, nil).want(t, 200)
	if stateOf(got) != "failed" || got.text("errorMessage") != tookTooLong {
		t.Fatalf("the silent worker's run: %s", got.raw)
	}
	if again := s.ask(t, "POST", collection, body); again.status != 201 {
		t.Errorf("its node is not free: %d %s", again.status, again.raw)
	}
	late := s.tell(t, silent, "completed", silent.result())
	if late.text("outcome") != "already_terminal" || late.body["continue"] != false || s.state(t, silent) != "failed" {
		t.Errorf("a late worker is told %s", late.raw)
	}
	if line := s.number(t, `SELECT count(*) FROM run_event WHERE run_id = $1 AND what = 'failed' AND actor_kind = 'backend'`, silent.id); line != 1 {
		t.Errorf("%d lines of the timeline say that the backend failed it, want 1", line)
	}
	if s.state(t, speaking) != "parse" {
		t.Errorf("the speaking worker's run is %s", s.state(t, speaking))
	}
	s.tell(t, speaking, "failed", nil)
}

// personTakesTime lets the deadline of workers go by while the designer is asked.
func personTakesTime(t *testing.T, s *suite) {
	asked, silent := s.create(t), s.create(t)
	s.tell(t, asked, "parsed", nil)
	eventually(t, 4*deadline, "a run of the same age ends", func() bool { return s.state(t, silent) == "failed" })
	if got := s.state(t, asked); got != "awaiting_confirm" {
		t.Errorf("the run that waits for its designer is %s", got)
	}
	s.confirm(t, asked)
	s.tell(t, asked, "completed", asked.result())
}

// deadJob takes a job from its queue as often as the queue lets it, and never does it. The state that it is in has no deadline.
func deadJob(t *testing.T, s *suite) {
	r := s.create(t)
	s.tell(t, r, "parsed", nil)
	s.confirm(t, r)
	client := sqs.New(sqs.Options{Region: s.at.AWS.Region, BaseEndpoint: &s.at.SQS,
		Credentials: credentials.NewStaticCredentialsProvider(s.at.AWS.AccessKeyID, s.at.AWS.SecretAccessKey, "")})
	queue := s.at.Queues["wf2des"]
	eventually(t, 20*time.Second, "the run of the dead job ends", func() bool {
		out, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Messages { // each goes back at once
			now := &sqs.ChangeMessageVisibilityInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle}
			if _, err := client.ChangeMessageVisibility(t.Context(), now); err != nil {
				t.Fatal(err)
			}
		}
		return s.state(t, r) == "failed"
	})
	const sentence = "The request could not be handed to a worker. Please start the generation again."
	if got := s.ask(t, "GET", r.self, nil).want(t, 200); got.text("errorMessage") != sentence {
		t.Errorf("the designer is told %q, want %q", got.text("errorMessage"), sentence)
	}
	eventually(t, 10*time.Second, "the dead letter is gone", func() bool {
		for _, m := range s.SQS.Peek("framerun-wf2des-dlq") {
			if strings.Contains(m.Body, r.id) {
				return false
			}
		}
		return true
	})
}

// heldBetween begins a run, holds its row until the reaper, which has looked, waits for it to end it, and does something to status in
// that moment. Then it lets the row go.
func heldBetween(t *testing.T, s *suite, then func()) run {
	t.Helper()
	r := s.create(t)
	tx, err := s.db.BeginTx(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(t.Context(), `SELECT FROM wf2des WHERE id = $1 FOR UPDATE`, r.id); err != nil {
		t.Fatal(err)
	}
	eventually(t, 4*deadline, "the reaper waits for the row", func() bool { return s.waiting(t) > 0 })
	then()
	return r
}

func (s *suite) waiting(t *testing.T) int {
	t.Helper()
	return s.number(t, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FOR UPDATE%'`)
}

// reaperKilled kills status after its look and before its end. The next one ends the run, once.
func reaperKilled(t *testing.T, s *suite) {
	var pid int
	r := heldBetween(t, s, func() { pid = s.signal(t, "status", syscall.SIGKILL) })
	s.back(t, "status", pid)
	eventually(t, 10*time.Second, "the run ends", func() bool { return s.state(t, r) == "failed" })
	s.mustEndOnce(t, r, "failed")
}

// reaperFrozen stops status after its look and before its end, holding the row as soon as it can. PostgreSQL takes the row back; the
// run is cancelled; and when status wakes up and wants to go on, it does no harm.
func reaperFrozen(t *testing.T, s *suite) {
	var pid int
	r := heldBetween(t, s, func() { pid = s.signal(t, "status", syscall.SIGSTOP) })
	t.Cleanup(func() { syscall.Kill(pid, syscall.SIGCONT) })
	eventually(t, 15*time.Second, "the designer can cancel", func() bool {
		return s.ask(t, "POST", r.self+"/cancel", nil).status == 200
	})
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	silent := s.create(t)
	eventually(t, 4*deadline, "the reaper goes on with others", func() bool { return s.state(t, silent) == "failed" })
	s.mustEndOnce(t, r, "cancelled")
}

func (s *suite) mustEndOnce(t *testing.T, r run, as string) {
	t.Helper()
	ends := s.number(t, `SELECT count(*) FROM run_event WHERE run_id = $1 AND outcome = 'applied'
		AND what IN ('failed', 'cancelled', 'completed')`, r.id)
	if got := s.state(t, r); got != as || ends != 1 {
		t.Errorf("the run is %s, want %s, and has ended %d times", got, as, ends)
	}
}
