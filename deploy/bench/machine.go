package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// circumstances say on what and when was measured, in a few words.
func (h *house) circumstances(ctx context.Context) (string, error) {
	db, err := h.open("postgres")
	if err != nil {
		return "", err
	}
	var version string
	if err := db.QueryRowContext(ctx, `SHOW server_version`).Scan(&version); err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	version, _, _ = strings.Cut(version, " ")
	busy, _, _ := strings.Cut(firstOf("/proc/loadavg", ""), " ")
	return fmt.Sprintf("%s · %d × %s, %s · PostgreSQL %s, durable (shared_buffers %s, max_wal_size %s) · %s · load average at the start: %s",
		time.Now().Format(time.DateOnly), runtime.NumCPU(), firstOf("/proc/cpuinfo", "model name"), memory(), version,
		settings["shared_buffers"], settings["max_wal_size"], runtime.Version(), busy), nil
}

// firstOf is the value of the first line of a file under /proc that begins with name; "unknown" if there is none.
func firstOf(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimLeft(strings.TrimSpace(value), ": \t")
		}
	}
	return "unknown"
}

func memory() string {
	var kilobytes int64
	if _, err := fmt.Sscan(firstOf("/proc/meminfo", "MemTotal"), &kilobytes); err != nil {
		return "memory unknown"
	}
	return fmt.Sprintf("%d GB", (kilobytes+1<<19)>>20)
}
