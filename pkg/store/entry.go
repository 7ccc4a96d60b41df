package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/lib/pq"
)

// EntryState is what became of an outbox entry so far. What was sent is no longer there.
type EntryState string

const (
	Pending  EntryState = "pending"   // a relay will carry it, when it is due
	Skipped  EntryState = "skipped"   // nobody wanted it any more, or an operator let it go
	SetAside EntryState = "set_aside" // its destination will never take it, or so it seemed
)

// ErrNoEntry: there is no such outbox entry. One that has been sent is gone.
var ErrNoEntry = errors.New("there is no such entry in the outbox; one that has been told is gone")

// Entry is an outbox entry as operators see it.
type Entry struct {
	ID          int64
	Destination string // jobs, events, …
	Run         lifecycle.Ref
	Attempt     int
	Stage       lifecycle.Stage // of jobs
	Seq         int             // the line of the timeline that is told; 0 for jobs
	State       EntryState
	CreatedAt   time.Time
	DueAt       time.Time // a relay does not try before
	Tries       int
	LastError   string // why the last try failed; "" if none has
	SettledAt   *time.Time
}

// Says names what the entry tells, in short: "jobs parse", "events 3".
func (e Entry) Says() string {
	if e.Stage != lifecycle.NoJob {
		return e.Destination + " " + string(e.Stage)
	}
	return fmt.Sprint(e.Destination, " ", e.Seq)
}

// EntryFilter narrows a list of outbox entries. Zero fields do not narrow.
type EntryFilter struct {
	States      []EntryState
	Destination string
	RunIDs      []string
}

// Entries lists at most limit entries of the outbox, oldest first.
func (s *Store) Entries(ctx context.Context, f EntryFilter, limit int) ([]Entry, error) {
	if len(f.States) == 0 {
		f.States = []EntryState{Pending, Skipped, SetAside}
	}
	query := selectEntries
	if len(f.RunIDs) > 0 {
		query = selectEntriesOfRuns
	}
	var rows []entryRow
	if err := s.many(ctx, &rows, query, pq.Array(f.States), f.Destination, limit, pq.Array(f.RunIDs)); err != nil {
		return nil, failed(ctx, "list the outbox", err)
	}
	entries := make([]Entry, len(rows))
	for i, r := range rows {
		entries[i] = r.entry()
	}
	return entries, nil
}

// Entry reads one outbox entry. Error: ErrNoEntry.
func (s *Store) Entry(ctx context.Context, id int64) (Entry, error) {
	var r entryRow
	err := s.one(ctx, &r, `SELECT `+entryColumns+` FROM outbox WHERE id = $1`, id)
	if errors.Is(err, sql.ErrNoRows) {
		return Entry{}, ErrNoEntry
	}
	return r.entry(), failed(ctx, "read an outbox entry", err)
}

// entryRow is a row of outbox.
type entryRow struct {
	ID          int64          `db:"id"`
	Destination string         `db:"destination"`
	Kind        lifecycle.Kind `db:"kind"`
	RunID       string         `db:"run_id"`
	Attempt     int            `db:"attempt"`
	Stage       *string        `db:"stage"`
	Seq         *int           `db:"seq"`
	State       EntryState     `db:"state"`
	CreatedAt   time.Time      `db:"created_at"`
	DueAt       time.Time      `db:"due_at"`
	Tries       int            `db:"tries"`
	LastError   *string        `db:"last_error"`
	SettledAt   *time.Time     `db:"settled_at"`
}

func (r entryRow) entry() Entry {
	e := Entry{
		ID: r.ID, Destination: r.Destination, Run: lifecycle.Ref{Kind: r.Kind, ID: r.RunID}, Attempt: r.Attempt,
		Stage: lifecycle.Stage(text(r.Stage)), State: r.State, CreatedAt: r.CreatedAt.UTC(), DueAt: r.DueAt.UTC(), Tries: r.Tries,
		LastError: text(r.LastError), SettledAt: utc(r.SettledAt),
	}
	if r.Seq != nil {
		e.Seq = *r.Seq
	}
	return e
}

const entryColumns = `id, destination, kind, run_id, attempt, stage, seq, state, created_at, due_at, tries, last_error, settled_at`

const selectEntries = `SELECT ` + entryColumns + ` FROM outbox
WHERE state = ANY($1) AND ($2 = '' OR destination = $2) AND $4::text[] IS NULL
ORDER BY id LIMIT $3`

// The order is no index's, lest the few entries of some runs be looked for among all.
const selectEntriesOfRuns = `SELECT ` + entryColumns + ` FROM outbox
WHERE run_id = ANY($4) AND state = ANY($1) AND ($2 = '' OR destination = $2)
ORDER BY id + 0 LIMIT $3`
