package events

import (
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// hints stand between those who tell and the connection: the client keeps everybody waiting, for seconds, while it writes to a server that
// does not read, or dials one that does not answer.
type hints struct {
	waiting chan hint
	closing <-chan struct{} // closed when what waits is to be passed on, and no more
	end     func()          // closes it
	passed  chan struct{}   // closed when that is done
}

type hint struct {
	subject string
	body    []byte
}

// waitingHints is how many hints may wait; more are lost. A connection that is there takes them faster than they come.
const waitingHints = 4096

func newHints() hints {
	closing := make(chan struct{})
	return hints{make(chan hint, waitingHints), closing, sync.OnceFunc(func() { close(closing) }), make(chan struct{})}
}

// add never waits, and reports whether there was room.
func (h hints) add(subject string, body []byte) bool {
	select {
	case h.waiting <- hint{subject, body}:
		return true
	default:
		return false
	}
}

// pass takes hints to the connection until close is called.
func (h hints) pass(conn *nats.Conn, log *slog.Logger) {
	defer close(h.passed)
	for {
		select {
		case next := <-h.waiting:
			next.publish(conn, log)
		case <-h.closing:
			for len(h.waiting) > 0 { // nobody else takes from there
				next := <-h.waiting
				next.publish(conn, log)
			}
			return
		}
	}
}

func (h hint) publish(conn *nats.Conn, log *slog.Logger) {
	if err := conn.Publish(h.subject, h.body); err != nil {
		log.Debug("hint lost", "subject", h.subject, "error", err)
	}
}

// close lets what waits pass, unless that takes long.
func (h hints) close() {
	h.end()
	select {
	case <-h.passed:
	case <-time.After(time.Second):
	}
}
