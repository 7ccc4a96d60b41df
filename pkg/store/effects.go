package store

import (
	"context"
	"errors"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/lib/pq"
)

// Effects are what a step brings about outside the suite, beside its job and its public event. An effect is written to the outbox
// in the row's own transaction, by the store of the service that carries it; nobody writes what nobody would carry.
type Effects struct {
	Documents bool // a designer's decision goes into the result document
	Designs   bool // a completed run of the edge wf2des goes into the platform's design registry (seed: relations)
}

const (
	documents = "documents"
	designs   = "designs"
)

// of names the destination of what was decided about run, or none. No step has two effects.
func (e Effects) of(run lifecycle.Run, decided lifecycle.Event) string {
	switch decided.What {
	case lifecycle.WasConfirmed, lifecycle.WasRejected:
		if e.Documents {
			return documents
		}
	case lifecycle.WasCompleted:
		if e.Designs && run.Kind == lifecycle.WF2Des && run.Edge == lifecycle.EdgeWF2Des {
			return designs
		}
	}
	return ""
}

// ClaimDecisions leases up to limit decisions that are due to be told to the result document, oldest first and per run in order.
func (s *Store) ClaimDecisions(ctx context.Context, limit int, lease time.Duration) ([]Parcel[lifecycle.Announcement], error) {
	return s.claimAnnouncements(ctx, documents, limit, lease)
}

// ClaimDesigns leases up to limit completed runs that are due to land in the design registry, oldest first. A run that was deleted
// after its completion lands like any other: the designer put away the run, not its design.
func (s *Store) ClaimDesigns(ctx context.Context, limit int, lease time.Duration) ([]Parcel[lifecycle.Landing], error) {
	claimed, err := s.claim(ctx, designs, "", limit, lease)
	if err != nil || len(claimed) == 0 {
		return nil, err
	}
	runs, unreadable, err := s.runsOf(ctx, claimed)
	if err != nil {
		return nil, err
	}
	completed, err := s.announced(ctx, claimed)
	if err != nil {
		return nil, err
	}
	parcels := make([]Parcel[lifecycle.Landing], len(claimed))
	for i, c := range claimed {
		parcels[i] = Parcel[lifecycle.Landing]{ID: c.ID, Tries: c.Tries, Until: c.until}
		parcels[i].Load, parcels[i].Broken = landing(runs[c.RunID], completed[c.ID])
		parcels[i].Broken = errors.Join(unreadable[c.RunID], parcels[i].Broken)
	}
	return parcels, nil
}

// landing puts the run and the line of its completion together.
func landing(run lifecycle.Run, a announced) (lifecycle.Landing, error) {
	completed, err := a.announcement()
	if err != nil {
		return lifecycle.Landing{}, err
	}
	return lifecycle.Landing{Run: run, At: completed.Event.At, By: completed.Event.By}, nil
}

// announced reads the timeline lines that the entries point to, by entry.
func (s *Store) announced(ctx context.Context, entries []claimed) (map[int64]announced, error) {
	ids := make([]int64, len(entries))
	for i, c := range entries {
		ids[i] = c.ID
	}
	var lines []announced
	if err := s.many(ctx, &lines, selectAnnouncements, pq.Array(ids)); err != nil {
		return nil, failed(ctx, "read what claimed entries tell", err)
	}
	byEntry := make(map[int64]announced, len(lines))
	for _, l := range lines {
		byEntry[l.ID] = l
	}
	return byEntry, nil
}

// Skip lets go of an entry that need not be told any more; the cause is kept for the operator.
func (s *Store) Skip(ctx context.Context, id int64, tries int, cause string) error {
	return failed(ctx, "skip an entry", s.exec(ctx, `UPDATE outbox SET state = 'skipped', settled_at = now(), last_error = $3
WHERE id = $1 AND tries = $2 AND settled_at IS NULL`, id, tries, legible(cause)))
}
