package fuzz

import (
	"context"
	"database/sql"
	"encoding/json/v2"
	"fmt"
	"time"

	"framerun.dev/deploy/local/stack"
)

// drained waits until the relay has carried all that waits in the outbox.
func drained(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		var waiting int
		if err := db.QueryRowContext(ctx, `SELECT count(*) FROM outbox WHERE state = 'pending'`).Scan(&waiting); err != nil {
			return fmt.Errorf("fuzz: waiting for the outbox: %w", err)
		}
		if waiting == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("fuzz: %d outbox entries still wait: %w", waiting, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// sums is what all books together say must stand in the database.
type sums struct{ wf2des, code2wf, lines, entries, keys, designs int }

func sum(books []*book) (s sums) {
	for _, b := range books {
		s.keys += len(b.keys)
		for _, e := range b.runs {
			if e.kind == "wf2des" {
				s.wf2des++
			} else {
				s.code2wf++
			}
			s.lines += e.lines
			s.entries += e.applied + e.jobs
			if e.kind == "wf2des" && e.edge == "wf2des" && e.status == "completed" {
				s.entries++
				s.designs++
			}
		}
	}
	return s
}

// totals compares the whole database with the books: what they do not know of must not be there.
func totals(ctx context.Context, db *sql.DB, books []*book) (differences []string, err error) {
	want := sum(books)
	for _, c := range []struct {
		what, query string
		want        int
	}{
		{"rows of wf2des", `SELECT count(*) FROM wf2des`, want.wf2des},
		{"rows of code2wf", `SELECT count(*) FROM code2wf`, want.code2wf},
		{"lines of run_event", `SELECT count(*) FROM run_event`, want.lines},
		{"idempotency keys", `SELECT count(*) FROM idempotency_key`, want.keys},
		{"entries ever written to the outbox", `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM outbox_id_seq`, want.entries},
		{"designs in the platform's registry", `SELECT count(*) FROM design`, want.designs},
	} {
		var got int
		if err := db.QueryRowContext(ctx, c.query).Scan(&got); err != nil {
			return nil, fmt.Errorf("fuzz: counting %s: %w", c.what, err)
		}
		if got != c.want {
			differences = append(differences, fmt.Sprintf("%s: there are %d, the answers told of %d", c.what, got, c.want))
		}
	}
	return differences, nil
}

// message is what the comparison reads of a job's message.
type message struct {
	JobID     string `json:"job_id"`
	Code2WFID string `json:"code2wf_id"`
	Stage     string `json:"stage"`
	Attempt   int    `json:"attempt"`
	ScreenID  string `json:"screen_id"`
	FileKey   string `json:"figma_file_key"`
	Project   int64  `json:"project_id"`
}

// queued compares what SQS has taken with the books: every job arrived or was skipped because its run had ended, no message is of
// another run, and names arrived exactly.
func queued(ctx context.Context, db *sql.DB, s *stack.Stack, books []*book) (differences []string, err error) {
	arrived := map[string]map[string]bool{} // run → stage or outbox entry
	for _, sent := range s.SQS.Log() {
		var m message
		if err := json.Unmarshal([]byte(sent.Body), &m); err != nil {
			return nil, fmt.Errorf("fuzz: a message: %w", err)
		}
		id := m.JobID + m.Code2WFID
		e := known(books, id)
		if e == nil || m.Attempt != 1 || m.ScreenID != e.screen || m.FileKey != e.fileKey || m.Project != e.tenant.project {
			differences = append(differences, fmt.Sprintf("a message is of no run that was told as created, or tells it differently: %s", sent.Body))
			continue
		}
		note(arrived, id, m.Stage)
	}
	if err := skipped(ctx, db, arrived); err != nil {
		return nil, err
	}
	for _, b := range books {
		for id, e := range b.runs {
			if len(arrived[id]) != e.jobs {
				differences = append(differences, fmt.Sprintf("%s %s: %d jobs were asked for, sent or skipped were %v", e.kind, id, e.jobs,
					arrived[id]))
			}
		}
	}
	return differences, nil
}

func skipped(ctx context.Context, db *sql.DB, arrived map[string]map[string]bool) error {
	rows, err := db.QueryContext(ctx, `SELECT run_id, stage FROM outbox WHERE state = 'skipped'`)
	if err != nil {
		return fmt.Errorf("fuzz: reading skipped jobs: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, stage string
		if err := rows.Scan(&id, &stage); err != nil {
			return err
		}
		note(arrived, id, stage)
	}
	return rows.Err()
}

func note(arrived map[string]map[string]bool, id, stage string) {
	if arrived[id] == nil {
		arrived[id] = map[string]bool{}
	}
	arrived[id][stage] = true
}

func known(books []*book, id string) *entry {
	for _, b := range books {
		if e := b.runs[id]; e != nil {
			return e
		}
	}
	return nil
}
