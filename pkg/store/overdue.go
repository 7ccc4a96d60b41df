package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"framerun.dev/pkg/lifecycle"
)

// OverdueRun is an open run whose state's deadline is over, as it was when it was looked at.
type OverdueRun struct {
	lifecycle.Ref
	lifecycle.Tenant
	State     lifecycle.State
	Attempt   int
	UpdatedAt time.Time     // the row's last change
	Since     time.Time     // when it was last heard of: that change, or its worker's last progress
	Limit     time.Duration // the deadline that it has missed
}

// Overdue lists up to limit open runs of any tenant that have been silent for as long as their state's deadline, the longest unchanged
// first. It only looks: by the time that somebody acts on it a run may have moved on, which the guard of End takes care of. The next page
// begins after the last run of this one; the zero OverdueRun is the beginning.
func (s *Store) Overdue(ctx context.Context, deadlines lifecycle.Deadlines, after OverdueRun, limit int) ([]OverdueRun, error) {
	var all []OverdueRun
	for _, kind := range lifecycle.Kinds {
		for _, state := range lifecycle.States {
			_, has := stateCodes[kind][state]
			if silent := deadlines[state]; has && state.Open() && silent > 0 {
				page, err := s.overdue(ctx, kind, state, silent, after, limit)
				if err != nil {
					return nil, failed(ctx, "list overdue runs", err)
				}
				all = append(all, page...)
			}
		}
	}
	slices.SortFunc(all, func(a, b OverdueRun) int { return cmp.Or(a.UpdatedAt.Compare(b.UpdatedAt), cmp.Compare(a.ID, b.ID)) })
	return all[:min(len(all), limit)], nil
}

func (s *Store) overdue(ctx context.Context, kind lifecycle.Kind, state lifecycle.State, silent time.Duration, after OverdueRun, limit int) (
	[]OverdueRun, error) {
	var rows []struct {
		ID             string    `db:"id"`
		OrganizationID int64     `db:"organization_id"`
		ProjectID      int64     `db:"project_id"`
		Attempt        int       `db:"attempt"`
		UpdatedAt      time.Time `db:"updated_at"`
		Since          time.Time `db:"since"`
	}
	args := []any{silent.Microseconds(), after.UpdatedAt, after.ID, limit, state.Working()}
	if kind == lifecycle.WF2Des {
		args = append(args, stateCodes[kind][state].phase)
	}
	err := s.many(ctx, &rows, selectOverdue[kind], args...)
	runs := make([]OverdueRun, len(rows))
	for i, r := range rows {
		runs[i] = OverdueRun{
			Ref: lifecycle.Ref{Kind: kind, ID: r.ID}, Tenant: lifecycle.Tenant{OrganizationID: r.OrganizationID, ProjectID: r.ProjectID},
			State: state, Attempt: r.Attempt, UpdatedAt: r.UpdatedAt.UTC(), Since: r.Since.UTC(), Limit: silent,
		}
	}
	return runs, err
}

// End is the command that fails the run as by, with a sentence fit for the client: only if it is still open in that state and attempt,
// and still silent, when it is locked.
func (r OverdueRun) End(by lifecycle.Actor, message string) lifecycle.Command {
	return lifecycle.Command{Verb: lifecycle.Fail, Run: r.Ref, Attempt: r.Attempt, By: by, Message: message,
		If: &lifecycle.Guard{State: r.State, Silent: r.Limit}}
}

var selectOverdue = map[lifecycle.Kind]string{
	lifecycle.WF2Des:  overdueOf(lifecycle.WF2Des, ` AND phase = $6`),
	lifecycle.Code2WF: overdueOf(lifecycle.Code2WF, ``),
}

// overdueOf says in SQL what lifecycle.Guard says of one run. $5 is whether the worker's pulse counts.
func overdueOf(kind lifecycle.Kind, alsoWhere string) string {
	return fmt.Sprintf(`SELECT id, organization_id, project_id, run.attempt, updated_at, greatest(updated_at, heard_at) AS since
FROM %[1]s run LEFT JOIN LATERAL ( -- looked up run by run, whatever the size of the table was when this was planned
	SELECT heard_at FROM run_pulse WHERE $5 AND kind = '%[1]s' AND run_id = run.id AND attempt = run.attempt LIMIT 1) pulse ON true
WHERE status = '0' AND updated_at <= now() - $1 * interval '1 microsecond' AND (updated_at, id) > ($2, $3)
	AND (heard_at IS NULL OR heard_at <= now() - $1 * interval '1 microsecond')%[2]s
ORDER BY updated_at, id LIMIT $4`, kind, alsoWhere)
}
