package servicetest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"testing"
)

// Listen opens a loopback port below those that outgoing connections take.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	for range 100 {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000))); err == nil {
			return l
		}
	}
	t.Fatal("servicetest: no free port between 20000 and 32000")
	return nil
}

// FreeAddress is a loopback address on which nobody listens at the moment.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l := Listen(t)
	defer l.Close()
	return l.Addr().String()
}

// alarm is a log handler for which every error is one of the test: a request that ends in one is always a bug.
type alarm struct {
	slog.Handler
	t testing.TB
}

// Enabled implements slog.Handler.
func (a alarm) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

// Handle implements slog.Handler.
func (a alarm) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(attr slog.Attr) bool {
		if attr.Key == "error" || attr.Key == "route" || attr.Key == "stack" {
			a.t.Errorf("the service logs an error: %s", attr)
		}
		return true
	})
	return nil
}

// WithAttrs implements slog.Handler.
func (a alarm) WithAttrs([]slog.Attr) slog.Handler { return a }

// WithGroup implements slog.Handler.
func (a alarm) WithGroup(string) slog.Handler { return a }
