package pgbench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"framerun.dev/deploy/bench/load"
)

// transaction is a line of pgbench's log.
type transaction struct {
	client, number int // the client's number-th, from 0
	took           time.Duration
	end            time.Time
}

// readLog reads what all of pgbench's threads have written.
func readLog(dir string) ([]transaction, error) {
	files, _ := filepath.Glob(filepath.Join(dir, "log.*")) // a fixed pattern: no error
	var all []transaction
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("pgbench: its log: %w", err)
		}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			t, err := parse(lines.Text())
			if err != nil {
				return nil, fmt.Errorf("pgbench: its log: %q: %w", lines.Text(), err)
			}
			all = append(all, t)
		}
	}
	return all, nil
}

// parse reads client, transaction, microseconds, script, and the end in seconds and microseconds.
func parse(line string) (transaction, error) {
	fields := strings.Fields(line)
	var n [6]int64
	if len(fields) < len(n) {
		return transaction{}, fmt.Errorf("%d fields", len(fields))
	}
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return transaction{}, err
		}
	}
	return transaction{int(n[0]), int(n[1]), time.Duration(n[2]) * time.Microsecond, time.Unix(n[4], n[5]*1000)}, nil
}

// warm is how many transactions a fresh connection is given: its process in the server has to read the catalog and to plan first.
const warm = 3

// Least is how many transactions a client has to do for a steady part to be seen.
const Least = 4 * warm

// steady is a sample of the time from when the last client was warm until the first had finished: a server process a connection is slow to
// begin with, and short runs would hold that against PostgreSQL. It counts all transactions, at the rate of that time.
func steady(log []transaction, clients int) load.Sample {
	if len(log) == 0 {
		return load.Sample{}
	}
	var begin time.Time
	last := make([]time.Time, clients)
	for _, t := range log {
		if t.number < warm && t.end.After(begin) {
			begin = t.end
		}
		if t.end.After(last[t.client]) {
			last[t.client] = t.end
		}
	}
	end := last[0]
	for _, t := range last {
		if t.Before(end) {
			end = t
		}
	}
	if !end.After(begin) { // too short a run to have such a time: it counts from end to end
		begin, end = span(log)
	}
	var took []time.Duration
	for _, t := range log {
		if t.end.After(begin) && !t.end.After(end) {
			took = append(took, t.took)
		}
	}
	s := load.Of(took, end.Sub(begin))
	if s.Count > 0 {
		s.Elapsed = time.Duration(float64(s.Elapsed) * float64(len(log)) / float64(s.Count))
	}
	s.Count = len(log)
	return s
}

// span is from the begin of the first transaction to the end of the last.
func span(log []transaction) (begin, end time.Time) {
	begin = log[0].end
	for _, t := range log {
		if b := t.end.Add(-t.took); b.Before(begin) {
			begin = b
		}
		if t.end.After(end) {
			end = t.end
		}
	}
	return begin, end
}
