package events

import (
	"context"
	"encoding/json/v2"
	"errors"
	"regexp"
	"slices"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
)

const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func newFeed(t *testing.T, b *Bus) *Feed {
	t.Helper()
	f, err := b.Feed()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func send(t *testing.T, f *Feed, loads ...lifecycle.Announcement) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // as the relay does
	defer cancel()
	errs := f.Send(ctx, loads)
	if len(errs) != len(loads) {
		t.Fatalf("%d errors for %d events", len(errs), len(loads))
	}
	return errs
}

func mustSend(t *testing.T, f *Feed, loads ...lifecycle.Announcement) {
	t.Helper()
	for i, err := range send(t, f, loads...) {
		if err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
}

var at = time.Date(2026, 11, 29, 1, 2, 3, 456789000, time.UTC)

// created is the first line of the i-th run's timeline, cancelled its second.
func created(i int) lifecycle.Announcement {
	return lifecycle.Announcement{Tenant: lifecycle.Tenant{OrganizationID: 7, ProjectID: 11}, Event: lifecycle.Event{
		Run: ref(lifecycle.WF2Des, i), Seq: 1, What: lifecycle.WasCreated, Outcome: lifecycle.Applied,
		By: lifecycle.Actor{Voice: lifecycle.User, Name: "sub"}, To: lifecycle.Parsing, Attempt: 1, Version: at, At: at, Traceparent: trace,
	}}
}

func cancelled(i int) lifecycle.Announcement {
	a := created(i)
	a.Event.Seq, a.Event.What, a.Event.From, a.Event.To = 2, lifecycle.WasCancelled, lifecycle.Parsing, lifecycle.Cancelled
	return a
}

// kept are the messages of the stream, oldest first.
func kept(t *testing.T, f *Feed) []*jetstream.RawStreamMsg {
	t.Helper()
	stream, err := f.js.Stream(t.Context(), Stream)
	if err != nil {
		t.Fatal(err)
	}
	info := stream.CachedInfo()
	var all []*jetstream.RawStreamMsg
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
		m, err := stream.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// Catches an event that says another thing than the timeline, or says it in another form than CloudEvents 1.0.
func TestEventsAreCloudEvents(t *testing.T) {
	t.Parallel()
	f := newFeed(t, newNerve(t).start(t).connect(t))
	completed := created(2)
	completed.Event = lifecycle.Event{
		Run: ref(lifecycle.Code2WF, 2), Seq: 12, What: lifecycle.WasCompleted, Outcome: lifecycle.Applied,
		By: lifecycle.Actor{Voice: lifecycle.Worker, Name: "worker"}, From: lifecycle.Processing, To: lifecycle.Completed, Attempt: 3,
		Version: at.Add(time.Second), At: at,
		Data: lifecycle.EventData{ResultURL: new("code2wf/x/1/spec.json"), FlagCount: new(0), Score: new(lifecycle.Score(8125)), ScoreVersion: new("ds@1.0")},
	}
	failed := cancelled(3)
	failed.Event.What, failed.Event.To, failed.Event.Data = lifecycle.WasFailed, lifecycle.Failed, lifecycle.EventData{ErrorMessage: new("Too large.")}
	for _, tc := range []struct {
		load    lifecycle.Announcement
		subject string
		trace   []string
		want    string
	}{
		{created(1), "framerun.event.wf2des.created", []string{trace}, `{"specversion":"1.0","id":"01980000-0000-7000-8000-000000000001/1",
			"source":"framerun","type":"run.framerun.wf2des.created","subject":"wf2des/01980000-0000-7000-8000-000000000001",
			"time":"2026-11-29T01:02:03.456789Z","datacontenttype":"application/json","sequence":"0000000001","traceparent":"` + trace + `",
			"data":{"kind":"wf2des","id":"01980000-0000-7000-8000-000000000001","organization_id":7,"project_id":11,"attempt":1,"from":null,
			"to":"parsing","status":"processing","phase":"parse","version":"2026-11-29T01:02:03.456789Z","by":"user","actor":"sub"}}`},
		{completed, "framerun.event.code2wf.completed", nil, `{"specversion":"1.0","id":"01980000-0000-7000-8000-000000000002/12",
			"source":"framerun","type":"run.framerun.code2wf.completed","subject":"code2wf/01980000-0000-7000-8000-000000000002",
			"time":"2026-11-29T01:02:03.456789Z","datacontenttype":"application/json","sequence":"0000000012",
			"data":{"kind":"code2wf","id":"01980000-0000-7000-8000-000000000002","organization_id":7,"project_id":11,"attempt":3,
			"from":"processing","to":"completed","status":"completed","phase":null,"version":"2026-11-29T01:02:04.456789Z","by":"worker",
			"actor":"worker","result_url":"code2wf/x/1/spec.json","flag_count":0,"score":0.8125,"score_version":"ds@1.0"}}`},
		{failed, "framerun.event.wf2des.failed", []string{trace}, `{"specversion":"1.0","id":"01980000-0000-7000-8000-000000000003/2",
			"source":"framerun","type":"run.framerun.wf2des.failed","subject":"wf2des/01980000-0000-7000-8000-000000000003",
			"time":"2026-11-29T01:02:03.456789Z","datacontenttype":"application/json","sequence":"0000000002","traceparent":"` + trace + `",
			"data":{"kind":"wf2des","id":"01980000-0000-7000-8000-000000000003","organization_id":7,"project_id":11,"attempt":1,
			"from":"parsing","to":"failed","status":"failed","phase":null,"version":"2026-11-29T01:02:03.456789Z","by":"user","actor":"sub",
			"error_message":"Too large."}}`},
	} {
		mustSend(t, f, tc.load)
		m := kept(t, f)
		got := m[len(m)-1]
		if got.Subject != tc.subject || !slices.Equal(got.Header["traceparent"], tc.trace) || len(got.Header["Traceparent"]) > 0 ||
			got.Header.Get("Content-Type") != "application/cloudevents+json" {
			t.Errorf("%s: subject %s, header %v", tc.subject, got.Subject, got.Header)
		}
		if diff := cmp.Diff(object(t, []byte(tc.want)), object(t, got.Data)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.subject, diff)
		}
		for name := range object(t, got.Data) {
			if !regexp.MustCompile(`^[a-z0-9]{1,20}$`).MatchString(name) {
				t.Errorf("CloudEvents §3.1 has no attribute called %q", name)
			}
		}
	}
}

func object(t *testing.T, raw []byte) (o map[string]any) {
	t.Helper()
	if err := json.Unmarshal(raw, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// Catches an event that is in the feed twice because its relay told it again.
func TestAnEventToldAgainIsKeptOnce(t *testing.T) {
	t.Parallel()
	n := newNerve(t).start(t)
	for range 3 {
		f := newFeed(t, n.connect(t))
		mustSend(t, f, created(1), created(2))
		mustSend(t, f, cancelled(1), created(1))
	}
	got := map[string]int{}
	for _, m := range kept(t, newFeed(t, n.connect(t))) {
		got[m.Header.Get("Nats-Msg-Id")]++
	}
	want := map[string]int{ref("", 1).ID + "/1": 1, ref("", 1).ID + "/2": 1, ref("", 2).ID + "/1": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Catches a run's events out of order.
func TestEventsOfOneRunAreInOrder(t *testing.T) {
	t.Parallel()
	f := newFeed(t, newNerve(t).start(t).connect(t))
	const runs = 100
	var first, then []lifecycle.Announcement
	for i := range runs {
		first, then = append(first, created(i)), append(then, cancelled(i))
	}
	mustSend(t, f, first...)
	mustSend(t, f, then...)
	order := map[string][]string{}
	for _, m := range kept(t, f) {
		var e CloudEvent
		if err := json.Unmarshal(m.Data, &e); err != nil {
			t.Fatal(err)
		}
		order[e.Subject] = append(order[e.Subject], e.Sequence)
	}
	for run, sequences := range order {
		if !slices.Equal(sequences, []string{"0000000001", "0000000002"}) {
			t.Errorf("%s: %v", run, sequences)
		}
	}
	if len(order) != runs {
		t.Errorf("the feed tells of %d runs, want %d", len(order), runs)
	}
}

// Catches a feed without its stream, one that only holds part of the events or no memory of ids, and two relays that fall over each
// other while they make it.
func TestTheStreamIsMade(t *testing.T) {
	t.Parallel()
	n := newNerve(t).start(t)
	done := make(chan []error)
	feeds := make([]*Feed, 5)
	for i := range feeds {
		feeds[i] = newFeed(t, n.connect(t))
	}
	for i, f := range feeds {
		go func() { done <- f.Send(t.Context(), []lifecycle.Announcement{created(i)}) }()
	}
	for range feeds {
		if errs := next(t, done); errs[0] != nil {
			t.Error(errs[0])
		}
	}
	stream, err := feeds[0].js.Stream(t.Context(), Stream)
	if err != nil {
		t.Fatal(err)
	}
	info := stream.CachedInfo()
	if c := info.Config; !slices.Equal(c.Subjects, []string{"framerun.event.>"}) || c.MaxAge != 14*24*time.Hour || c.Duplicates != 10*time.Minute ||
		c.Storage != jetstream.FileStorage || info.State.Msgs != 5 {
		t.Errorf("the stream is %+v with %d messages", c, info.State.Msgs)
	}
}

// Catches a service that overrides what an operator has set.
func TestAnExistingStreamIsLeftAlone(t *testing.T) {
	t.Parallel()
	n := newNerve(t).start(t)
	f := newFeed(t, n.connect(t))
	operators, err := f.js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: Stream, Subjects: []string{"framerun.event.>", "framerun.other.>"}, MaxMsgs: 1000, MaxAge: time.Hour, Duplicates: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	mustSend(t, f, created(1))
	now, err := f.js.Stream(t.Context(), Stream)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(operators.CachedInfo().Config, now.CachedInfo().Config); diff != "" || now.CachedInfo().State.Msgs != 1 {
		t.Errorf("%d messages, settings (-operator's +now):\n%s", now.CachedInfo().State.Msgs, diff)
	}
}

// Catches an event that counts as told although nobody has kept it, and a feed that does not come back when its server does.
func TestServerDownThenBack(t *testing.T) {
	t.Parallel()
	n := newNerve(t)
	b := n.connect(t)
	f := newFeed(t, b)
	for i := range 2 { // before the stream is known, and afterwards
		for j, err := range send(t, f, created(2*i), created(2*i+1)) {
			if err == nil {
				t.Errorf("event %d was told to nobody and counts as told", j)
			}
		}
		n.start(t)
		eventually(t, "the bus is connected", func() bool { return b.Check() == nil })
		mustSend(t, f, created(2*i), created(2*i+1))
		n.stop()
		eventually(t, "the loss is noticed", func() bool { return b.Check() != nil })
	}
	n.start(t)
	eventually(t, "the bus is connected", func() bool { return b.Check() == nil })
	if m := kept(t, f); len(m) != 4 {
		t.Errorf("the feed has %d events, want 4", len(m))
	}
}

// newFeedThatLostItsStream has told one event, which is gone.
func newFeedThatLostItsStream(t *testing.T) *Feed {
	t.Helper()
	f := newFeed(t, newNerve(t).start(t).connect(t))
	mustSend(t, f, created(1))
	if err := f.js.DeleteStream(t.Context(), Stream); err != nil {
		t.Fatal(err)
	}
	return f
}

// Catches a feed that tells nobody for ever after its stream was lost.
func TestALostStreamIsMadeAgain(t *testing.T) {
	t.Parallel()
	f := newFeedThatLostItsStream(t)
	if errs := send(t, f, created(2), created(3)); errs[0] == nil || errs[1] == nil {
		t.Fatalf("told to no stream: %v", errs)
	}
	mustSend(t, f, created(2), created(3))
	if m := kept(t, f); len(m) != 2 {
		t.Errorf("the new stream has %d events, want 2", len(m))
	}
}

// Catches a lane that waits for ever, counts as told what nobody has kept, or does not make a lost stream again, because somebody else hears
// the events, and does not answer.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	f := newFeedThatLostItsStream(t)
	if _, err := f.js.Conn().SubscribeSync(FeedSubjects); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for i, err := range f.Send(ctx, []lifecycle.Announcement{created(2), created(3)}) {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("event %d: %v, want %v", i, err, context.DeadlineExceeded)
		}
	}
	mustSend(t, f, created(2), created(3))
	if m := kept(t, f); len(m) != 2 {
		t.Errorf("the new stream has %d events, want 2", len(m))
	}
}
