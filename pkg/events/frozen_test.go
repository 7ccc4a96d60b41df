package events

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
)

// frozen is the address of a server that greets the first who comes and from then on neither reads nor greets, as one that was stopped
// does: the kernel goes on taking what is sent until its buffers are full.
func frozen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", strings.TrimPrefix(newNerve(t).url(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for first := true; ; first = false {
			conn, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			t.Cleanup(func() { conn.Close() })
			if first {
				greet(conn)
			}
		}
	}()
	return "nats://" + l.Addr().String()
}

func greet(conn net.Conn) {
	fmt.Fprint(conn, `INFO {"server_id":"frozen","version":"2.11.0","proto":1,"headers":true,"max_payload":1048576}`+"\r\n")
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if lines.Text() == "PING" {
			fmt.Fprint(conn, "PONG\r\n")
			return
		}
	}
}

func toFrozen(t *testing.T) *Bus {
	t.Helper()
	b, err := Connect(frozen(t), "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	eventually(t, "the bus is connected", func() bool { return b.Check() == nil })
	return b
}

// Catches a request that waits for NATS: for a minute while a server does not read and the buffers before it are full, and for two seconds
// each time that the client tries in vain to greet it again.
func TestTellingDoesNotWaitForAFrozenServer(t *testing.T) {
	t.Parallel()
	b := toFrozen(t)
	slowest := make(chan time.Duration, 1)
	go func() {
		var longest time.Duration
		for start := time.Now(); time.Since(start) < 6*time.Second; <-time.After(time.Millisecond) {
			for i := range 50 {
				began := time.Now()
				b.Told(ref(lifecycle.WF2Des, i))
				longest = max(longest, time.Since(began))
			}
		}
		slowest <- longest
	}()
	if took := next(t, slowest); took > 500*time.Millisecond {
		t.Errorf("one telling took %v", took)
	}
}

// Catches a lane that is held up for a minute, long beyond its leases, by a server that does not read.
func TestSendingDoesNotWaitForAFrozenServer(t *testing.T) {
	t.Parallel()
	f := newFeed(t, toFrozen(t))
	f.ready = true
	loads := make([]lifecycle.Announcement, 250)
	for i := range loads {
		loads[i] = created(i)
		loads[i].Event.Data.ErrorMessage = new(strings.Repeat("x", 4000))
	}
	for range 12 { // more than buffers hold
		took := make(chan time.Duration, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			began := time.Now()
			for i, err := range f.Send(ctx, loads) {
				if err == nil {
					t.Errorf("event %d was told to nobody and counts as told", i)
				}
			}
			took <- time.Since(began)
		}()
		if took := next(t, took); took > 4*time.Second {
			t.Fatalf("sending took %v", took)
		}
	}
}
