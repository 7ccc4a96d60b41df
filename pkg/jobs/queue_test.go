package jobs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"framerun.dev/pkg/lifecycle"
	"github.com/google/go-cmp/cmp"
)

// fate is how a sender's caller sees an error.
func fate(err error) string {
	switch {
	case err == nil:
		return "sent"
	case errors.Is(err, lifecycle.ErrUndeliverable):
		return "never"
	}
	return "later"
}

func fates(errs []error) []string {
	all := make([]string, len(errs))
	for i, err := range errs {
		all[i] = fate(err)
	}
	return all
}

// Catches a job in another edge's queue, in no organization's group or without its attributes.
func TestEachJobGoesToItsQueue(t *testing.T) {
	t.Parallel()
	q := newQueue(t, nil)
	errs := q.sender().Send(t.Context(), []lifecycle.Job{
		job(1), job(2, func(j *lifecycle.Job) { j.Run.Edge, j.Run.OrganizationID = lifecycle.EdgeDes2WF, 8 }), job(3, asCode2WF),
		job(4, func(j *lifecycle.Job) { j.Traceparent = "" }),
	})
	if diff := cmp.Diff([]string{"sent", "sent", "sent", "sent"}, fates(errs)); diff != "" {
		t.Fatal(diff, errs)
	}
	got := map[string][]string{}
	for _, r := range q.requests {
		for _, e := range r.Entries {
			attributes := []string{}
			for name, a := range e.MessageAttributes {
				attributes = append(attributes, fmt.Sprintf("%s:%s=%s", name, a.DataType, a.StringValue))
			}
			slices.Sort(attributes)
			got[r.QueueURL] = append(got[r.QueueURL], "group "+e.MessageGroupID+" "+strings.Join(attributes, " "))
		}
	}
	trace := " traceparent:String=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	want := map[string][]string{
		"https://sqs/wf2des":  {"group 7 kind:String=wf2des stage:String=parse" + trace, "group 7 kind:String=wf2des stage:String=parse"},
		"https://sqs/des2wf":  {"group 8 kind:String=wf2des stage:String=parse" + trace},
		"https://sqs/code2wf": {"group 7 kind:String=code2wf stage:String=generate" + trace},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Catches a batch that SQS refuses for its count or its weight, a message that is lost or doubled on the way into batches, and
// one queue for all that is asked more often than it has to be.
func TestBatchesKeepWithinTheBounds(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	for name, tc := range map[string]struct {
		jobs     int
		prompt   string
		requests int
	}{
		"one":              {1, "", 1},
		"ten":              {10, "", 1},
		"eleven":           {11, "", 2},
		"a hundred":        {100, "", 10},
		"two of 600 kB":    {2, strings.Repeat("x", 600_000), 2},
		"ten of 300 kB":    {10, strings.Repeat("x", 300_000), 4},
		"escaped to 90 kB": {20, strings.Repeat("\uFFFF", 15_000), 2},
		"none":             {0, "", 0},
	} {
		q := newQueue(t, nil)
		sender := q.sender()
		sender.URLs = map[string]string{"wf2des": "https://sqs/all", "des2wf": "https://sqs/all", "code2wf": "https://sqs/all"}
		all := make([]lifecycle.Job, tc.jobs)
		for i := range all {
			all[i] = job(i, func(j *lifecycle.Job) {
				if j.Run.Prompt = &tc.prompt; i%2 == 1 {
					j.Run.Edge = lifecycle.EdgeDes2WF
				}
			})
		}
		for i, err := range sender.Send(t.Context(), all) {
			if err != nil {
				t.Errorf("%s: job %d: %v", name, i, err)
			}
		}
		arrived := map[string]int{}
		for _, r := range q.requests {
			size := 0
			for _, e := range r.Entries {
				size += e.size()
				arrived[e.MessageBody]++
			}
			if len(r.Entries) > 10 || size > mebibyte {
				t.Errorf("%s: a batch of %d messages and %d bytes", name, len(r.Entries), size)
			}
		}
		if len(arrived) != tc.jobs || len(q.entries()) != tc.jobs || len(q.requests) != tc.requests {
			t.Errorf("%s: %d of %d messages arrived in %d requests, want %d", name, len(arrived), tc.jobs, len(q.requests), tc.requests)
		}
	}
}

// Catches a message that can never be sent and is tried for ever, or that takes its neighbours along.
func TestJobsThatCannotBeSentAtAll(t *testing.T) {
	t.Parallel()
	q := newQueue(t, nil)
	sender := q.sender()
	delete(sender.URLs, "des2wf")
	errs := sender.Send(t.Context(), []lifecycle.Job{
		job(1), job(2, func(j *lifecycle.Job) { j.Run.Prompt = new(strings.Repeat("x", 1<<20)) }),
		job(3, func(j *lifecycle.Job) { j.Run.Edge = lifecycle.EdgeDes2WF }), job(4, func(j *lifecycle.Job) { j.Run.ScreenID = "\xff" }), job(5),
	})
	if diff := cmp.Diff([]string{"sent", "never", "never", "never", "sent"}, fates(errs)); diff != "" {
		t.Errorf("%s%v", diff, errs)
	}
	if n := len(q.entries()); n != 2 {
		t.Errorf("%d messages arrived, want 2", n)
	}
	for i := 1; i <= 3; i++ {
		if errs[i] == nil || !strings.Contains(errs[i].Error(), runID(i+1)) {
			t.Errorf("an operator does not learn which run: %v", errs[i])
		}
	}
}

// Catches an entry that failed inside a 200 and counts as sent, one that is given up although it only has to be sent again, and one
// that SQS forgot to mention.
func TestEachEntryOfABatchHasItsOwnFate(t *testing.T) {
	t.Parallel()
	say := []string{"", "InternalError", "InvalidMessageContents", "", "ServiceUnavailable", "InvalidParameterValue", "AccessDenied",
		"forgotten", "KmsThrottled", ""}
	q := newQueue(t, func(r request) (a answer) {
		for i, e := range r.Entries {
			switch say[i] {
			case "":
				a.take(e)
			case "forgotten":
			default:
				a.fail(e, say[i], say[i] == "AccessDenied" || strings.HasPrefix(say[i], "Invalid"))
			}
		}
		slices.Reverse(a.Successful) // SQS promises no order
		return a
	})
	var all []lifecycle.Job
	for i := range say {
		all = append(all, job(i))
	}
	errs := q.sender().Send(t.Context(), all)
	want := []string{"sent", "later", "never", "sent", "later", "never", "later", "later", "later", "sent"}
	if diff := cmp.Diff(want, fates(errs)); diff != "" {
		t.Errorf("(-want +got):\n%s%v", diff, errs)
	}
	if len(q.requests) != 1 {
		t.Errorf("%d requests were made, want 1: the relay decides when to try again", len(q.requests))
	}
}

// Catches one poisonous message that holds up the nine beside it for ever, when SQS refuses the whole request for its sake.
func TestTheGuiltyMessageIsFound(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"InvalidMessageContents", "BatchRequestTooLong", "InvalidParameterValue", "AWS.SimpleQueueService.BatchRequestTooLong"} {
		q := newQueue(t, func(r request) (a answer) {
			for _, e := range r.Entries {
				if strings.Contains(e.MessageBody, "poison") {
					return whole(400, code)
				}
				a.take(e)
			}
			return a
		})
		var all []lifecycle.Job
		want := slices.Repeat([]string{"sent"}, 25)
		for i := range want {
			all = append(all, job(i))
		}
		all[13].Run.Prompt, want[13] = new("poison"), "never"
		errs := q.sender().Send(t.Context(), all)
		if diff := cmp.Diff(want, fates(errs)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", code, diff)
		}
		if len(q.requests) != 3+10 {
			t.Errorf("%s: %d requests, want the three batches and the ten of the refused one", code, len(q.requests))
		}
	}
}

// Catches jobs that are given up, or counted as sent, because the queue is down, missing, busy, closed to us or lies.
func TestAQueueThatIsNotWellIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]answer{
		"no such queue":          whole(400, "QueueDoesNotExist"),
		"wrong credentials":      whole(403, "InvalidClientTokenId"),
		"access denied":          whole(400, "AccessDeniedException"),
		"throttled":              whole(400, "RequestThrottled"),
		"down":                   whole(503, "ServiceUnavailable"),
		"broken":                 whole(500, "InternalFailure"),
		"hangs up":               {status: -1},
		"an empty answer":        {},
		"another message's hash": {Successful: []taken{{ID: "0", MessageID: "m", MD5OfMessageBody: strings.Repeat("0", 32)}}},
	} {
		q := newQueue(t, func(request) answer { return a })
		if got := fates(q.sender().Send(t.Context(), []lifecycle.Job{job(1), job(2)})); got[0] != "later" || got[1] != "later" {
			t.Errorf("%s: %v", name, got)
		}
		if len(q.requests) != 1 {
			t.Errorf("%s: %d requests, want 1", name, len(q.requests))
		}
	}
}

// Catches one edge's queue that is down and takes the others' jobs along.
func TestQueuesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	q := newQueue(t, func(r request) (a answer) {
		if r.QueueURL == "https://sqs/des2wf" {
			return whole(503, "ServiceUnavailable")
		}
		for _, e := range r.Entries {
			a.take(e)
		}
		return a
	})
	errs := q.sender().Send(t.Context(), []lifecycle.Job{job(1), job(2, func(j *lifecycle.Job) { j.Run.Edge = lifecycle.EdgeDes2WF }), job(3, asCode2WF)})
	if diff := cmp.Diff([]string{"sent", "later", "sent"}, fates(errs)); diff != "" {
		t.Error(diff)
	}
}
