package events

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrNoFeed: the stream of the public feed does not exist, for nothing was ever told.
var ErrNoFeed = errors.New("there is no public feed yet: nothing was ever told")

// Reading says which part of the public feed is read, oldest first.
type Reading struct {
	Kind   lifecycle.Kind // "" for both
	Since  time.Time      // told since then; the zero time for all that is kept
	Follow bool           // go on with what comes, instead of ending where the feed ends now
}

// Read hands the events of the feed to heard, in order, until ctx ends, heard fails, or the feed does. It leaves no trace on the server:
// an ordered consumer is this reader's own, and begins again by itself where a connection broke.
//
// Errors: ErrNoFeed, lifecycle.ErrUnavailable when NATS cannot be asked, and heard's own.
func (b *Bus) Read(ctx context.Context, r Reading, heard func(CloudEvent) error) error {
	consumer, pending, err := b.consumer(ctx, r)
	if err != nil {
		return err
	}
	if pending == 0 && !r.Follow {
		return nil
	}
	messages, err := consumer.Messages()
	if err != nil {
		return fmt.Errorf("events: read the feed: %w: %w", lifecycle.ErrUnavailable, err)
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Stop)()
	for {
		msg, err := messages.Next()
		switch {
		case ctx.Err() != nil && r.Follow:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("events: read the feed: it did not end in time: %w", lifecycle.ErrUnavailable)
		case err != nil:
			return fmt.Errorf("events: read the feed: %w: %w", lifecycle.ErrUnavailable, err)
		}
		if last, err := hand(msg, heard); err != nil || last && !r.Follow {
			return err
		}
	}
}

// hand reads one message, and says whether it is the last for now.
func hand(msg jetstream.Msg, heard func(CloudEvent) error) (last bool, err error) {
	meta, err := msg.Metadata()
	if err != nil {
		return false, fmt.Errorf("events: read the feed: %w", err)
	}
	var event CloudEvent
	if err := json.Unmarshal(msg.Data(), &event); err != nil {
		return false, fmt.Errorf("events: message %d of the feed is no event of the suite: %w", meta.Sequence.Stream, err)
	}
	return meta.NumPending == 0, heard(event)
}

func (b *Bus) consumer(ctx context.Context, r Reading) (jetstream.Consumer, uint64, error) {
	js, err := jetstream.New(b.conn)
	if err != nil {
		return nil, 0, fmt.Errorf("events: JetStream: %w", err)
	}
	if err := b.Check(); err != nil {
		return nil, 0, fmt.Errorf("events: %w: %w", lifecycle.ErrUnavailable, err)
	}
	config := jetstream.OrderedConsumerConfig{FilterSubjects: []string{FeedSubjects}}
	if r.Kind != "" {
		config.FilterSubjects = []string{feed + string(r.Kind) + ".>"}
	}
	if !r.Since.IsZero() {
		config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartTimePolicy, &r.Since
	}
	consumer, err := js.OrderedConsumer(ctx, Stream, config)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, 0, ErrNoFeed
	}
	if err != nil {
		return nil, 0, fmt.Errorf("events: stream %s: %w: %w", Stream, lifecycle.ErrUnavailable, err)
	}
	info, err := consumer.Info(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("events: stream %s: %w: %w", Stream, lifecycle.ErrUnavailable, err)
	}
	return consumer, info.NumPending, nil
}
