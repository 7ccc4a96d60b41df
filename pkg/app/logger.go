package app

import (
	"io"
	"log/slog"
)

// NewLogger writes one JSON object a line, each with the service's name.
func NewLogger(w io.Writer, service string, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})).With(slog.String("service", service))
}
