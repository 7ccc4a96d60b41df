package e2e

import (
	"encoding/json/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/events"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// whole plays a run from its creation to its rating, speaking for the worker and for the designer, and returns what happened to it.
func (s *suite) whole(t *testing.T, r run) []string {
	t.Helper()
	s.tell(t, r, "parsed", nil)
	s.confirm(t, r)
	s.tell(t, r, "completed", r.result())
	s.ask(t, "POST", r.self+"/placement", nil).want(t, 200)
	s.ask(t, "POST", r.self+"/feedback", map[string]any{"feedbackStatus": "adopted"}).want(t, 200)
	return []string{"created", "parsed", "confirmed", "completed", "placed", "rated"}
}

func publicFeed(t *testing.T, s *suite) {
	r := s.create(t)
	s.checkFeed(t, r, s.whole(t, r))
}

// checkFeed waits until the public feed holds these events of the run, in this order, each with the attributes of CloudEvents 1.0.
func (s *suite) checkFeed(t *testing.T, r run, whats []string) {
	t.Helper()
	var got []jetstream.Msg
	eventually(t, 15*time.Second, "all events of the run are in the feed", func() bool {
		got = s.feed(t, r)
		return len(got) >= len(whats)
	})
	var came []string
	last, seen := "", map[string]bool{}
	for _, m := range got {
		var e events.CloudEvent
		if err := json.Unmarshal(m.Data(), &e); err != nil {
			t.Fatalf("%s: %v", m.Data(), err)
		}
		what := m.Subject()[strings.LastIndex(m.Subject(), ".")+1:]
		came = append(came, what)
		if e.SpecVersion != "1.0" || e.Source == "" || e.Type != "run.framerun.wf2des."+what || e.Subject != "wf2des/"+r.id || e.Time.IsZero() ||
			e.DataContentType != "application/json" || e.Data.ID != r.id {
			t.Errorf("event %s: %s", what, m.Data())
		}
		if m.Headers().Get("Nats-Msg-Id") != e.ID || m.Headers().Get("Content-Type") != "application/cloudevents+json" {
			t.Errorf("headers of event %s: %v", what, m.Headers())
		}
		if e.Sequence <= last || seen[e.ID] {
			t.Errorf("event %s has sequence %s after %s", e.ID, e.Sequence, last)
		}
		last, seen[e.ID] = e.Sequence, true
	}
	if !slices.Equal(came, whats) {
		t.Errorf("the feed tells %v, want %v", came, whats)
	}
}

// feed reads what the stream holds of the run; nothing while there is no stream.
func (s *suite) feed(t *testing.T, r run) []jetstream.Msg {
	t.Helper()
	conn, err := nats.Connect(s.at.NATS)
	if err != nil {
		return nil
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), events.Stream)
	if err != nil {
		return nil
	}
	consumer, err := stream.OrderedConsumer(t.Context(), jetstream.OrderedConsumerConfig{FilterSubjects: []string{events.FeedSubjects}})
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context())
	if err != nil || info.State.Msgs == 0 {
		return nil
	}
	batch, err := consumer.Fetch(int(info.State.Msgs), jetstream.FetchMaxWait(2*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	var found []jetstream.Msg
	for m := range batch.Messages() {
		if strings.Contains(string(m.Data()), r.id) {
			found = append(found, m)
		}
	}
	return found
}
