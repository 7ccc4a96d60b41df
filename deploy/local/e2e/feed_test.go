package e2e

import (
	"context"
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

// publicFeed plays two runs whose events share their subjects: neither may push the other's out.
func publicFeed(t *testing.T, s *suite) {
	first, second := s.create(t), s.create(t)
	whats := s.whole(t, first)
	s.whole(t, second)
	for _, r := range []run{first, second} {
		s.checkFeed(t, r, whats)
	}
}

// checkFeed expects that the public feed holds these events of the run, in this order, each with the attributes of CloudEvents 1.0.
func (s *suite) checkFeed(t *testing.T, r run, whats []string) {
	t.Helper()
	got := s.feed(t, r, len(whats))
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

// feed reads the stream from its beginning until it has found n events of the run, and then what the stream holds beyond.
func (s *suite) feed(t *testing.T, r run, n int) []jetstream.Msg {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	conn, err := nats.Connect(s.at.NATS)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	consumer := reader(ctx, t, conn)
	var found []jetstream.Msg
	note := func(m jetstream.Msg) {
		if strings.Contains(string(m.Data()), r.id) {
			found = append(found, m)
		}
	}
	for len(found) < n {
		m, err := consumer.Next(jetstream.FetchContext(ctx))
		if err != nil {
			t.Fatalf("the feed holds %d events of the run, want %d: %v", len(found), n, err)
		}
		note(m)
	}
	rest, err := consumer.FetchNoWait(1000)
	if err != nil {
		t.Fatal(err)
	}
	for m := range rest.Messages() {
		note(m)
	}
	return found
}

// reader waits until there is a stream and begins with its first event.
func reader(ctx context.Context, t *testing.T, conn *nats.Conn) jetstream.Consumer {
	t.Helper()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the stream is there", func() bool {
		_, err := js.Stream(ctx, events.Stream)
		return err == nil
	})
	consumer, err := js.OrderedConsumer(ctx, events.Stream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{events.FeedSubjects}})
	if err != nil {
		t.Fatal(err)
	}
	return consumer
}
