package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/lib/pq"
)

// Parcel is an outbox entry under a lease: until the lease runs out nobody else is given it. Tries counts the leases and is the
// fence between two relays: one that slept through its lease no longer puts back or sets aside what is another's by now.
type Parcel[T any] struct {
	ID     int64
	Tries  int
	Load   T
	Broken error // why there is no load; lifecycle.ErrUndeliverable if there never will be

	Until time.Time // the lease does not end sooner
}

// ClaimJobs leases up to limit jobs of one kind of work (lifecycle.Run's Work) that are due, oldest first and per run in order. Jobs
// that nobody wants any more (the run ended or moved to another attempt before they left) are marked skipped and not returned.
func (s *Store) ClaimJobs(work string) func(ctx context.Context, limit int, lease time.Duration) ([]Parcel[lifecycle.Job], error) {
	return func(ctx context.Context, limit int, lease time.Duration) ([]Parcel[lifecycle.Job], error) {
		for {
			claimed, err := s.claim(ctx, "jobs", work, limit, lease)
			if err != nil || len(claimed) == 0 {
				return nil, err
			}
			runs, unreadable, err := s.runsOf(ctx, claimed)
			if err != nil {
				return nil, err
			}
			parcels, unwanted := wanted(claimed, runs, unreadable)
			if err := s.skip(ctx, unwanted); err != nil || len(parcels) > 0 || len(claimed) < limit {
				return parcels, err
			}
		}
	}
}

// SortJobs says of jobs that were written by a program which does not know of work what work they are: until then nobody claims them.
func (s *Store) SortJobs(ctx context.Context) error {
	return failed(ctx, "sort jobs", s.exec(ctx, sortJobs))
}

var sortJobs = `UPDATE outbox SET work = coalesce((SELECT CASE edge WHEN '` + edgeCodes[lifecycle.EdgeWF2Des] + `' THEN '` +
	string(lifecycle.EdgeWF2Des) + `' ELSE '` + string(lifecycle.EdgeDes2WF) + `' END FROM wf2des WHERE wf2des.id = outbox.run_id), '` +
	string(lifecycle.Code2WF) + `')
WHERE destination = 'jobs' AND work = '' AND state = 'pending'`

// wanted tells jobs that somebody still waits for from those that nobody wants any more. A run that this program cannot read may be
// readable for a newer one: its job is tried again.
func wanted(entries []claimed, runs map[string]lifecycle.Run, unreadable map[string]error) (parcels []Parcel[lifecycle.Job], unwanted []int64) {
	for _, c := range entries {
		run, ok := runs[c.RunID]
		switch err := unreadable[c.RunID]; {
		case err != nil:
			parcels = append(parcels, Parcel[lifecycle.Job]{ID: c.ID, Tries: c.Tries, Until: c.until, Broken: err})
		case !ok || run.Ended() || run.Attempt != c.Attempt:
			unwanted = append(unwanted, c.ID)
		default:
			job := lifecycle.Job{Run: run, Stage: lifecycle.Stage(text(c.Stage)), Attempt: c.Attempt, Traceparent: text(c.Traceparent)}
			parcels = append(parcels, Parcel[lifecycle.Job]{ID: c.ID, Tries: c.Tries, Until: c.until, Load: job})
		}
	}
	return parcels, unwanted
}

// ClaimEvents leases up to limit public events that are due, oldest first and per run in order.
func (s *Store) ClaimEvents(ctx context.Context, limit int, lease time.Duration) ([]Parcel[lifecycle.Announcement], error) {
	return s.claimAnnouncements(ctx, "events", limit, lease)
}

func (s *Store) claimAnnouncements(ctx context.Context, destination string, limit int, lease time.Duration) ([]Parcel[lifecycle.Announcement], error) {
	claimed, err := s.claim(ctx, destination, "", limit, lease)
	if err != nil || len(claimed) == 0 {
		return nil, err
	}
	loads, err := s.announced(ctx, claimed)
	if err != nil {
		return nil, err
	}
	parcels := make([]Parcel[lifecycle.Announcement], len(claimed))
	for i, c := range claimed {
		parcels[i] = Parcel[lifecycle.Announcement]{ID: c.ID, Tries: c.Tries, Until: c.until}
		parcels[i].Load, parcels[i].Broken = loads[c.ID].announcement()
	}
	return parcels, nil
}

// announced is a timeline line that is to be told, with its run's tenant.
type announced struct {
	line
	ID             int64 `db:"id"`
	OrganizationID int64 `db:"organization_id"`
	ProjectID      int64 `db:"project_id"`
}

// announcement fails for the zero announced: the line or its run is gone.
func (a announced) announcement() (lifecycle.Announcement, error) {
	if a.ID == 0 {
		return lifecycle.Announcement{}, fmt.Errorf("store: the timeline line or its run is gone: %w", lifecycle.ErrUndeliverable)
	}
	event, err := a.event()
	if err != nil {
		return lifecycle.Announcement{}, errors.Join(lifecycle.ErrUndeliverable, err)
	}
	return lifecycle.Announcement{Event: event, Tenant: lifecycle.Tenant{OrganizationID: a.OrganizationID, ProjectID: a.ProjectID}}, nil
}

// The entries are read first and by their key, and their lines one by one (hence OFFSET 0): as one join PostgreSQL, which may have seen the
// tables empty when it planned, would walk the whole outbox, or the whole timeline once for each entry.
const selectAnnouncements = `
WITH told AS MATERIALIZED (SELECT id, kind, run_id, seq FROM outbox WHERE id = ANY($1))
SELECT line.*, told.id, organization_id, project_id
FROM told, LATERAL (
	SELECT ` + lineColumns + ` FROM run_event
	WHERE run_event.kind = told.kind AND run_event.run_id = told.run_id AND run_event.seq = told.seq OFFSET 0) AS line, LATERAL (
	SELECT organization_id, project_id FROM wf2des WHERE told.kind = 'wf2des' AND wf2des.id = told.run_id
	UNION ALL
	SELECT organization_id, project_id FROM code2wf WHERE told.kind = 'code2wf' AND code2wf.id = told.run_id) AS tenant`

type claimed struct {
	ID          int64          `db:"id"`
	Tries       int            `db:"tries"`
	Kind        lifecycle.Kind `db:"kind"`
	RunID       string         `db:"run_id"`
	Attempt     int            `db:"attempt"`
	Stage       *string        `db:"stage"`
	Traceparent *string        `db:"traceparent"`
	until       time.Time
}

func (s *Store) claim(ctx context.Context, destination, work string, limit int, lease time.Duration) ([]claimed, error) {
	until := time.Now().Add(lease)
	var entries []claimed
	err := s.many(ctx, &entries, claimDue, limit, lease.Milliseconds(), destination, work)
	for i := range entries {
		entries[i].until = until
	}
	return entries, failed(ctx, "claim the outbox", err)
}

// claimDue claims what is due for a destination. An entry waits while an older one of the same run and destination is pending, so that a
// run's messages leave in order. That question is put so that no index but the run's own can be of any use to it, and so that it is no
// join (hence OFFSET 0): PostgreSQL, which may have seen the table empty when it planned, would think every way equally short. For the same
// reason "pending" is said as settled_at IS NULL wherever entries are found by something else than their lane: an index of what is pending
// would offer itself. now() rather than clock_timestamp(): it is constant within the statement.
const claimDue = `
WITH due AS (
	SELECT id FROM outbox
	WHERE destination = $3 AND work = $4 AND state = 'pending' AND due_at <= now() AND NOT EXISTS (
		SELECT FROM outbox older
		WHERE older.run_id = outbox.run_id AND older.settled_at IS NULL
			AND older.destination IS NOT DISTINCT FROM outbox.destination AND older.id - outbox.id < 0
		OFFSET 0)
	ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED
), leased AS (
	UPDATE outbox SET due_at = now() + $2 * interval '1 millisecond', tries = tries + 1
	WHERE id = ANY(ARRAY(SELECT id FROM due))
	RETURNING id, tries, kind, run_id, attempt, stage, traceparent
)
SELECT id, tries, kind, run_id, attempt, stage, traceparent FROM leased, ` + asynchronously + ` ORDER BY id`

// asynchronously lets a statement that joins it, and is a transaction by itself, commit without waiting for the disk. Should PostgreSQL
// crash in that moment, a lease or the news that an entry has arrived is forgotten, and it is sent again, as it may be after any crash; of
// several entries of one run all of them, in their order.
const asynchronously = `(SELECT set_config('synchronous_commit', 'off', true)) AS asynchronously`

// runsOf reads the runs that the entries speak of, deleted or not, and tells which of them it cannot read.
func (s *Store) runsOf(ctx context.Context, entries []claimed) (byID map[string]lifecycle.Run, unreadable map[string]error, err error) {
	ids := map[lifecycle.Kind][]string{}
	for _, e := range entries {
		ids[e.Kind] = append(ids[e.Kind], e.RunID)
	}
	byID, unreadable = map[string]lifecycle.Run{}, map[string]error{}
	for kind, wanted := range ids {
		var rows []row
		err := s.many(ctx, &rows, `SELECT `+columns[kind]+` FROM `+string(kind)+` WHERE id = ANY($1)`, pq.Array(wanted))
		if err != nil {
			return nil, nil, failed(ctx, "read the runs of jobs", err)
		}
		for _, r := range rows {
			if byID[r.ID], err = r.run(kind); err != nil {
				unreadable[r.ID] = err
			}
		}
	}
	return byID, unreadable, nil
}

// Sent forgets entries that have arrived. It needs no fence: what has arrived need not be sent again, whoever holds it now.
func (s *Store) Sent(ctx context.Context, ids []int64) error {
	return failed(ctx, "forget sent entries", s.exec(ctx, `DELETE FROM outbox USING `+asynchronously+` WHERE id = ANY($1)`, pq.Array(ids)))
}

// Failure is an entry that could not be delivered this time.
type Failure struct {
	ID    int64
	Tries int
	Wait  time.Duration // until it is due again
	Cause string        // for the operator
}

// Retry gives entries back that will be tried again.
func (s *Store) Retry(ctx context.Context, failures ...Failure) error {
	var ids, tries, waits []int64
	var causes []string
	for _, f := range failures {
		ids, tries, waits = append(ids, f.ID), append(tries, int64(f.Tries)), append(waits, f.Wait.Milliseconds())
		causes = append(causes, legible(f.Cause))
	}
	return failed(ctx, "put entries back", s.exec(ctx, retry, pq.Array(ids), pq.Array(tries), pq.Array(waits), pq.Array(causes)))
}

// The entries are found by their key, whatever is guessed about their number, and locked in one order by everybody.
const retry = `
WITH held AS MATERIALIZED (SELECT id FROM outbox WHERE id = ANY($1) ORDER BY id FOR UPDATE)
UPDATE outbox SET due_at = now() + wait * interval '1 millisecond', last_error = cause
FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::text[]) AS failed (id, tries, wait, cause) JOIN held USING (id)
WHERE outbox.id = ANY($1) AND outbox.id = failed.id AND outbox.tries = failed.tries AND settled_at IS NULL`

// legible is a cause as PostgreSQL takes it, whatever a destination has put into its error.
func legible(cause string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(cause, "\uFFFD"), "\x00", "")
}

// SetAside takes an entry out of the way that can never be delivered. It stays for the operator; of a job, service status fails the run.
func (s *Store) SetAside(ctx context.Context, id int64, tries int, cause string) error {
	return failed(ctx, "set an entry aside", s.exec(ctx, `UPDATE outbox SET state = 'set_aside', settled_at = now(), last_error = $3
WHERE id = $1 AND tries = $2 AND settled_at IS NULL`, id, tries, legible(cause)))
}

func (s *Store) skip(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	return failed(ctx, "skip unwanted jobs", s.exec(ctx, `UPDATE outbox SET state = 'skipped', settled_at = now()
WHERE id = ANY($1) AND settled_at IS NULL`, pq.Array(ids)))
}

// StrandedJob is a job that was set aside although its run still waits for it.
type StrandedJob struct {
	Run     lifecycle.Ref
	Attempt int
	State   lifecycle.State // in which the run waits for it
}

// waiting is how a run is that waits for a job of a stage.
var waiting = map[lifecycle.Stage]lifecycle.State{
	lifecycle.StageParse: lifecycle.Parsing, lifecycle.StageAssemble: lifecycle.Assembling, lifecycle.StageGenerate: lifecycle.Processing,
}

// StrandedJobs lists up to limit open runs whose job of the current attempt and phase can never be delivered.
func (s *Store) StrandedJobs(ctx context.Context, limit int) ([]StrandedJob, error) {
	var entries []claimed
	err := s.many(ctx, &entries, `
SELECT o.id, o.kind, o.run_id, o.attempt, o.stage FROM outbox o
LEFT JOIN wf2des w ON o.kind = 'wf2des' AND w.id = o.run_id AND w.attempt = o.attempt
LEFT JOIN code2wf c ON o.kind = 'code2wf' AND c.id = o.run_id AND c.attempt = o.attempt
WHERE o.destination = 'jobs' AND o.state = 'set_aside' AND (o.stage, coalesce(w.phase::text, c.status::text)) IN
	(('parse', '`+phaseCodes[lifecycle.PhaseParse]+`'), ('assemble', '`+phaseCodes[lifecycle.PhaseAssemble]+`'),
	('generate', '`+statusCodes[lifecycle.StatusProcessing]+`'))
ORDER BY o.settled_at LIMIT $1`, limit)
	stranded := make([]StrandedJob, len(entries))
	for i, e := range entries {
		stranded[i] = StrandedJob{lifecycle.Ref{Kind: e.Kind, ID: e.RunID}, e.Attempt, waiting[lifecycle.Stage(text(e.Stage))]}
	}
	return stranded, failed(ctx, "list stranded jobs", err)
}

// Backlog is what the outbox holds for one destination.
type Backlog struct {
	Destination string  `db:"destination"`
	Pending     int64   `db:"pending"`
	SetAside    int64   `db:"set_aside"`
	OldestAge   float64 `db:"oldest_age"` // seconds since the oldest pending entry was written; 0 when there is none
}

// Backlogs counts the outbox for each destination, for metrics. What was skipped is not looked at: it only grows.
func (s *Store) Backlogs(ctx context.Context) ([]Backlog, error) {
	var b []Backlog
	err := s.many(ctx, &b, `SELECT destination, coalesce(pending, 0) AS pending, coalesce(set_aside, 0) AS set_aside, coalesce(oldest_age, 0) AS oldest_age
FROM (VALUES ('designs'), ('documents'), ('events'), ('jobs')) AS known (destination)
LEFT JOIN (SELECT destination, count(*) AS pending, extract(epoch FROM now() - min(created_at))::float8 AS oldest_age
	FROM outbox WHERE state = 'pending' GROUP BY destination) p USING (destination)
LEFT JOIN (SELECT destination, count(*) AS set_aside FROM outbox WHERE state = 'set_aside' GROUP BY destination) a USING (destination)
ORDER BY destination`)
	return b, failed(ctx, "count the outbox", err)
}
