package events

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/nats-io/nats.go"
)

// Bus tells and hears hints. Telling never blocks and never fails the caller: a hint that is lost costs a second, not a result.
type Bus struct {
	conn  *nats.Conn
	log   *slog.Logger
	hints hints
}

// unread is how long a server may leave unread what is written to it before the connection counts as lost. The client's own bound is a
// minute, in which it does not even notice that its pings stay unanswered. A lane's sending must be able to outlast it.
const unread = time.Second

// Connect returns a bus for the NATS servers at url. A server that is down now is tried again for ever in the background.
func Connect(url, service string, log *slog.Logger) (*Bus, error) {
	conn, err := nats.Connect(url, nats.Name("framerun-"+service),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(250*time.Millisecond), nats.ReconnectJitter(100*time.Millisecond, time.Second),
		nats.ReconnectBufSize(1<<20), nats.Timeout(2*time.Second), nats.PingInterval(5*time.Second), nats.FlusherTimeout(unread),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("NATS connection lost; hints are lost until it is back", "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("NATS connection is back") }),
		nats.ErrorHandler(complain(log)))
	if err != nil {
		return nil, fmt.Errorf("events: connect to NATS: %w", err)
	}
	b := &Bus{conn, log, newHints()}
	go b.hints.pass(conn, log)
	return b, nil
}

// complain logs what NATS reports, one report at a time. In a flood that would be a report for nearly each message that is heard.
func complain(log *slog.Logger) nats.ErrHandler {
	var last time.Time
	return func(_ *nats.Conn, s *nats.Subscription, err error) {
		if !errors.Is(err, nats.ErrSlowConsumer) {
			log.Warn("NATS", "error", err)
			return
		}
		if time.Since(last) < 10*time.Second {
			return
		}
		last = time.Now()
		lost, _ := s.Dropped()
		log.Warn("NATS brings more than can be heard", "subject", s.Subject, "lost", lost)
	}
}

// Close flushes what was told and hangs up.
func (b *Bus) Close() {
	b.hints.close()
	if b.conn.IsConnected() {
		b.conn.FlushTimeout(time.Second)
	}
	b.conn.Close()
}

// Check is for readiness: an error while the bus is not connected.
func (b *Bus) Check() error {
	if !b.conn.IsConnected() {
		return fmt.Errorf("NATS is %s", b.conn.Status())
	}
	return nil
}

// TellChanged asks query to look at the run again.
func (b *Bus) TellChanged(run lifecycle.Ref) { b.publish(Changed(run), nil) }

// TellWake says that something may wait in the outbox, about runs of any kind.
func (b *Bus) TellWake() { b.publish(OutboxWake, nil) }

// TellStranded says that a job was set aside.
func (b *Bus) TellStranded() { b.publish(Stranded, nil) }

// Told is what a writer says after a commit whose job, if there is one, another process carries.
func (b *Bus) Told(run lifecycle.Ref) {
	b.TellChanged(run)
	b.publish(OutboxWake, []byte(run.Kind))
}

// MaxMessage is the length of a progress message in code points.
const MaxMessage = 200

// Progress is a worker's latest word on how far it is. It is nowhere stored, and means nothing once the run has moved on.
type Progress struct {
	Version time.Time `json:"version"` // the row's UpdatedAt that it belongs to
	At      time.Time `json:"at"`
	Percent *float64  `json:"percent,omitzero"` // 0..100
	Message string    `json:"message,omitzero"` // fit for the client
}

// TellProgress passes a worker's progress on.
func (b *Bus) TellProgress(run lifecycle.Ref, p Progress) {
	body, err := json.Marshal(p)
	if err != nil {
		b.log.Warn("progress not told", "error", err)
		return
	}
	b.publish(Progressed(run), body)
}

// HearStranded returns a channel that holds one token whenever it was told since the last look that a job was set aside.
func (b *Bus) HearStranded() (<-chan struct{}, error) {
	wake := make(chan struct{}, 1)
	err := b.hear(Stranded, func(*nats.Msg) {
		select {
		case wake <- struct{}{}:
		default: // one token says it all
		}
	})
	return wake, err
}

// HearOutbox calls ring whenever it was told that jobs of runs of a kind may wait in the outbox, or anything for the empty one.
// ring must not block.
func (b *Bus) HearOutbox(ring func(lifecycle.Kind)) error {
	return b.hear(OutboxWake, func(m *nats.Msg) { ring(lifecycle.Kind(m.Data)) })
}

// HearChanged calls heard for each hint that a run changed. heard must not block.
func (b *Bus) HearChanged(heard func(lifecycle.Ref)) error {
	return b.hear(changed+">", func(m *nats.Msg) {
		if run, ok := refOf(m.Subject, changed); ok {
			heard(run)
		}
	})
}

// HearProgress calls heard for each progress report that can be read. heard must not block.
func (b *Bus) HearProgress(heard func(lifecycle.Ref, Progress)) error {
	return b.hear(progress+">", func(m *nats.Msg) {
		var p Progress
		if run, ok := refOf(m.Subject, progress); ok && json.Unmarshal(m.Data, &p) == nil {
			heard(run, p)
		}
	})
}

// What comes faster than it is heard waits, up to so many messages and bytes of a subscription, and what comes beyond that is lost.
// The client's own bounds are 512 Ki and 64 MiB, and an empty message counts no bytes: a flood would fill the memory.
const waitingMessages, waitingBytes = 16 << 10, 4 << 20

func (b *Bus) hear(subject string, heard nats.MsgHandler) error {
	s, err := b.conn.Subscribe(subject, heard)
	if err != nil {
		return err
	}
	return s.SetPendingLimits(waitingMessages, waitingBytes)
}

func (b *Bus) publish(subject string, body []byte) {
	if !b.hints.add(subject, body) {
		b.log.Debug("hint lost", "subject", subject, "error", "too many wait")
	}
}
