package servicetest

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// Log keeps what a service logs. It is safe for concurrent use; the zero Log is empty and ready.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Logger writes into the log as a service does: one JSON object a line.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Lines waits until there are n lines, for a request's is written when its answer has left, and returns them. More than n, or one
// that is not the line of a request, fail the test.
func (l *Log) Lines(t testing.TB, n int) []map[string]any {
	t.Helper()
	Eventually(t, "every request has its line in the log", func() bool { return strings.Count(l.String(), "\n") >= n })
	var lines []map[string]any
	for text := range strings.Lines(l.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil || line["msg"] != "request" {
			t.Errorf("not the line of a request: %q", text)
		}
		lines = append(lines, line)
	}
	if len(lines) != n {
		t.Errorf("the log has %d lines for %d requests", len(lines), n)
	}
	return lines
}

// alarm is a log handler for which every error is one of the test: a request that ends in one is always a bug.
type alarm struct {
	slog.Handler
	t testing.TB
}

// Handle implements slog.Handler.
func (a alarm) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		r.Attrs(func(attr slog.Attr) bool {
			if attr.Key == "error" || attr.Key == "route" || attr.Key == "stack" {
				a.t.Errorf("the service logs an error: %s", attr)
			}
			return true
		})
	}
	return a.Handler.Handle(ctx, r)
}
