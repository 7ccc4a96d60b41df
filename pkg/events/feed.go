package events

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"slices"
	"strconv"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// CloudEvent is one event of the public feed, in CloudEvents 1.0 structured JSON. The feed is at least once; per run, events are
// in the order of Sequence, and ID is the same whenever one is told again.
type CloudEvent struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"` // <run id>/<sequence>
	Source          string    `json:"source"`
	Type            string    `json:"type"`    // run.framerun.<kind>.<what>
	Subject         string    `json:"subject"` // <kind>/<run id>
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Sequence        string    `json:"sequence"` // the place in the run's timeline
	Traceparent     string    `json:"traceparent,omitzero"`
	Data            Happened  `json:"data"`
}

// Happened is a CloudEvent's data. Members are the seed's column names.
type Happened struct {
	Kind           lifecycle.Kind            `json:"kind"`
	ID             string                    `json:"id"`
	OrganizationID int64                     `json:"organization_id"`
	ProjectID      int64                     `json:"project_id"`
	Attempt        int                       `json:"attempt"`
	From           *lifecycle.State          `json:"from"` // null for created
	To             lifecycle.State           `json:"to"`
	Status         lifecycle.Status          `json:"status"`
	Phase          *lifecycle.Phase          `json:"phase"`
	Version        time.Time                 `json:"version"` // the row's updated_at after this event
	By             lifecycle.Voice           `json:"by"`
	Actor          string                    `json:"actor"`
	ResultURL      *string                   `json:"result_url,omitzero"`
	ErrorMessage   *string                   `json:"error_message,omitzero"`
	FlagCount      *int                      `json:"flag_count,omitzero"`
	Score          *float64                  `json:"score,omitzero"`
	ScoreVersion   *string                   `json:"score_version,omitzero"`
	FeedbackStatus *lifecycle.FeedbackStatus `json:"feedback_status,omitzero"`
}

// Feed publishes the public feed to JetStream. It is a relay.Sender.
type Feed struct {
	js    jetstream.JetStream
	ready bool // the stream is known to exist; only Send touches it, and one lane calls Send
}

// forgotten is how long the client remembers an event that nobody acknowledges; whoever sends it waits for a shorter time.
const forgotten = 5 * time.Second

// Feed returns the publisher of the public feed on this bus.
func (b *Bus) Feed() (*Feed, error) {
	js, err := jetstream.New(b.conn, jetstream.WithPublishAsyncTimeout(forgotten))
	if err != nil {
		return nil, fmt.Errorf("events: JetStream: %w", err)
	}
	return &Feed{js: js}, nil
}

// Send publishes each event and waits until JetStream has stored it. Nats-Msg-Id lets the server drop what it holds already.
func (f *Feed) Send(ctx context.Context, loads []lifecycle.Announcement) []error {
	errs := make([]error, len(loads))
	if err := f.ensureStream(ctx); err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	acks := make([]jetstream.PubAckFuture, len(loads))
	for i, load := range loads {
		acks[i], errs[i] = f.publish(ctx, load)
	}
	for i, ack := range acks {
		if errs[i] == nil {
			errs[i] = stored(ctx, ack)
		}
	}
	// Whatever went wrong, the stream may be gone, with its server's disk perhaps: the next Send looks before it tells anything.
	f.ready = !slices.ContainsFunc(errs, func(err error) bool { return err != nil })
	return errs
}

// ensureStream makes the stream where there is none, and leaves an operator's own settings of an existing one alone.
func (f *Feed) ensureStream(ctx context.Context) error {
	if f.ready {
		return nil
	}
	_, err := f.js.Stream(ctx, Stream)
	if err != nil {
		_, err = f.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: Stream, Description: "what happened to generation runs", Subjects: []string{FeedSubjects},
			MaxAge: 14 * 24 * time.Hour, Duplicates: 10 * time.Minute, Discard: jetstream.DiscardOld,
		})
	}
	if err != nil {
		return fmt.Errorf("events: stream %s: %w", Stream, err)
	}
	f.ready = true
	return nil
}

// publish sends an event on its way, in the order in which it is called, unless ctx has ended while the client waited for a server that does
// not read.
func (f *Feed) publish(ctx context.Context, load lifecycle.Announcement) (jetstream.PubAckFuture, error) {
	event := cloudEvent(load)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("events: publish %s: %w", event.ID, err)
	}
	body, err := json.Marshal(event)
	if err != nil {
		return nil, fmt.Errorf("events: %s: %w: %w", event.ID, lifecycle.ErrUndeliverable, err)
	}
	msg := &nats.Msg{Subject: Public(load.Event), Data: body, Header: nats.Header{
		jetstream.MsgIDHeader: {event.ID}, "Content-Type": {"application/cloudevents+json"},
	}}
	if event.Traceparent != "" {
		msg.Header["traceparent"] = []string{event.Traceparent} // NATS header names are case-sensitive; W3C writes it in lower case
	}
	ack, err := f.js.PublishMsgAsync(msg)
	if err != nil {
		return nil, fmt.Errorf("events: publish %s: %w", event.ID, err)
	}
	return ack, nil
}

// stored waits for JetStream's word that it has the event.
func stored(ctx context.Context, ack jetstream.PubAckFuture) error {
	var err error
	select {
	case <-ack.Ok():
		return nil
	case err = <-ack.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	return fmt.Errorf("events: publish %s: %w", ack.Msg().Header.Get(jetstream.MsgIDHeader), err)
}

func cloudEvent(load lifecycle.Announcement) CloudEvent {
	e := load.Event
	seq := strconv.Itoa(e.Seq)
	data := Happened{
		Kind: e.Run.Kind, ID: e.Run.ID, OrganizationID: load.Tenant.OrganizationID, ProjectID: load.Tenant.ProjectID,
		Attempt: e.Attempt, To: e.To, Status: e.To.Status(), Version: e.Version, By: e.By.Voice, Actor: e.By.Name,
		ResultURL: e.Data.ResultURL, ErrorMessage: e.Data.ErrorMessage, FlagCount: e.Data.FlagCount,
		ScoreVersion: e.Data.ScoreVersion, FeedbackStatus: e.Data.Feedback,
	}
	if e.From != lifecycle.None {
		data.From = &e.From
	}
	if phase := e.To.Phase(); phase != "" {
		data.Phase = &phase
	}
	if e.Data.Score != nil {
		data.Score = new(e.Data.Score.Float())
	}
	return CloudEvent{
		SpecVersion: "1.0", ID: e.Run.ID + "/" + seq, Source: "framerun", Type: "run.framerun." + string(e.Run.Kind) + "." + string(e.What),
		Subject: string(e.Run.Kind) + "/" + e.Run.ID, Time: e.At, DataContentType: "application/json",
		Sequence: fmt.Sprintf("%010d", e.Seq), Traceparent: e.Traceparent, Data: data,
	}
}
