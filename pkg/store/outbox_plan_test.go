package store

import (
	"encoding/json/v2"
	"strings"
	"testing"
	"time"
	"uuid"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"github.com/jmoiron/sqlx"
)

// A claim finds what is due by its own index, however much was skipped before and however much waits for others. Catches an order that
// PostgreSQL would rather take from the primary key, from the beginning of time on.
func TestAClaimLooksAtNothingElse(t *testing.T) {
	t.Parallel()
	s := openSmall(t, 2)
	for _, statement := range []string{
		`INSERT INTO outbox (destination, work, kind, run_id, attempt, stage, state, settled_at)
			SELECT 'jobs', 'wf2des', 'wf2des', n::text, 1, 'parse', 'skipped', now() FROM generate_series(1, 20000) n`,
		`INSERT INTO outbox (destination, work, kind, run_id, attempt, stage)
			SELECT 'jobs', 'wf2des', 'wf2des', n::text, 1, 'parse' FROM generate_series(20001, 30000) n`,
		`INSERT INTO outbox (destination, work, kind, run_id, attempt, stage)
			SELECT 'jobs', 'code2wf', 'code2wf', n::text, 1, 'generate' FROM generate_series(30001, 30200) n`,
		`INSERT INTO outbox (destination, kind, run_id, attempt, seq) SELECT 'events', 'wf2des', n::text, 1, 1 FROM generate_series(1, 5000) n`,
		`ANALYZE outbox`,
	} {
		if _, err := s.db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, claim := range [][2]string{{"jobs", "code2wf"}, {"jobs", "wf2des"}, {"jobs", "des2wf"}, {"events", ""}} {
		index, looked := s.plan(t, claimDue, 100, 1000, claim[0], claim[1]).of("outbox")
		if index != "outbox_lane_idx" || looked > 300 {
			t.Errorf("%v: %d entries were looked at by %s", claim, looked, index)
		}
	}
}

// A queue is empty most of the time, and so it is when its statements are planned. Catches a claim that takes another index than the
// run's own to ask for what is older, and then reads all that waits, once for each entry.
func TestAClaimPlannedWhileNothingWaited(t *testing.T) {
	t.Parallel()
	s := openSmall(t, 1)
	s.emptyOutbox(t)
	p := s.planBefore(t, func(conn *sqlx.Conn) error {
		_, err := conn.ExecContext(t.Context(), `INSERT INTO outbox (destination, kind, run_id, attempt, seq)
			SELECT 'events', 'wf2des', n::text, 1, 1 FROM generate_series(1, 3000) n`)
		return err
	}, claimDue, 100, 1000, "events", "")
	if index, looked := p.of("outbox"); index != "outbox_lane_idx" || looked > 100 {
		t.Errorf("%d entries were looked at by %s", looked, index)
	}
	if index, looked := p.of("older"); index != "outbox_run_idx" || looked > 1 {
		t.Errorf("for what is older, %d entries were looked at by %s for each", looked, index)
	}
	if index, looked := p.of("outbox_1"); index != "outbox_pkey" || looked > 100 {
		t.Errorf("to lease them, %d entries were looked at by %s", looked, index)
	}
}

// Catches a step that takes another index than the run's own to ask for what is older, because nothing waited when it was planned: while a
// destination is down, every step would read all that waits for it.
func TestAStepPlannedWhileNothingWaited(t *testing.T) {
	t.Parallel()
	s := openSmall(t, 1)
	s.emptyOutbox(t)
	run, err := s.Create(t.Context(), Creation{By: lifecycle.Actor{Voice: lifecycle.User, Name: platform.UserPlugin}, Run: lifecycle.Run{
		Ref: lifecycle.Ref{Kind: lifecycle.Code2WF, ID: uuid.NewV7().String()}, FigmaFileKey: "file", ScreenID: "screen", PageImportID: platform.PageImportID,
		Tenant: lifecycle.Tenant{OrganizationID: platform.OrganizationID, ProjectID: platform.ProjectID},
	}})
	if err != nil {
		t.Fatal(err)
	}
	p := s.planBefore(t, func(conn *sqlx.Conn) error {
		_, err := conn.ExecContext(t.Context(), `INSERT INTO outbox (destination, kind, run_id, attempt, seq)
			SELECT 'events', 'wf2des', '00' || n, 1, 1 FROM generate_series(1, 3000) n`)
		if err == nil {
			_, err = conn.ExecContext(t.Context(), `UPDATE code2wf SET status = '0', error_message = NULL`) // the step is taken once more
		}
		return err
	}, storeSteps[lifecycle.Code2WF], failing(t, run), `{`+run.ID+`}`)
	if index, looked := p.of("older"); index != "outbox_run_idx" || looked < 1 || looked > 4 {
		t.Errorf("for what is older, %d entries were looked at by %q", looked, index)
	}
}

// Catches what reads all that waits, once or for every run, because nothing waited when it was planned: what is told of a claimed batch,
// what retention asks before it lets go, and what an operator asks of a run.
func TestTheRestPlannedWhileNothingWaited(t *testing.T) {
	t.Parallel()
	s := openSmall(t, 1)
	s.emptyOutbox(t)
	for _, statement := range []string{
		`SET session_replication_role = replica`, history[lifecycle.Code2WF], `RESET session_replication_role`,
		`INSERT INTO run_event (kind, run_id, seq, what, outcome, actor_kind, actor, to_state, attempt, version, at)
			SELECT 'code2wf', lpad(n::text, 36, '0'), 1, 'deleted', 'applied', 'user', 'x', 'completed', 1, now(), now() - interval '1 day'
			FROM generate_series(1, 20000) n`,
		`ANALYZE run_event, code2wf`,
	} {
		if _, err := s.db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		about, query, index string
		most                int
		args                []any
	}{
		{"what is told", selectAnnouncements, "outbox_pkey", 2, []any{`{1,2}`}},
		{"deleted runs", selectDeleted, "outbox_run_idx", 1, []any{lifecycle.Code2WF, 1, 200}},
		{"entries of a run", selectEntriesOfRuns, "outbox_run_idx", 1, []any{`{pending}`, "", 10, `{` + strings.Repeat("0", 31) + `02999}`}},
		{"what is kept", deleteKept[lifecycle.Code2WF], "outbox_run_idx", 1, []any{`{` + strings.Repeat("0", 31) + `29999}`}},
	} {
		p := s.planBefore(t, func(conn *sqlx.Conn) error {
			_, err := conn.ExecContext(t.Context(), `INSERT INTO outbox (id, destination, kind, run_id, attempt, seq) OVERRIDING SYSTEM VALUE
				SELECT n, 'events', 'code2wf', lpad(n::text, 36, '0'), 1, 1 FROM generate_series(1, 3000) n`)
			return err
		}, c.query, c.args...)
		if index, looked := p.of("outbox"); index != c.index || looked > c.most {
			t.Errorf("%s: %d entries were looked at by %q", c.about, looked, index)
		}
		s.emptyOutbox(t)
	}
}

// emptyOutbox leaves the outbox as it is most of the time: much has gone through it, nothing is there, and PostgreSQL has taken note of that.
func (s *Store) emptyOutbox(t *testing.T) {
	t.Helper()
	for _, statement := range []string{
		`INSERT INTO outbox (destination, kind, run_id, attempt, seq) SELECT 'events', 'wf2des', n::text, 1, 1 FROM generate_series(1, 20000) n`,
		`DELETE FROM outbox`, `VACUUM ANALYZE outbox`,
	} {
		if _, err := s.db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// failing is the failure of a run on its way into the statement.
func failing(t *testing.T, run lifecycle.Run) string {
	t.Helper()
	cmd := lifecycle.Command{Verb: lifecycle.Fail, Run: run.Ref, By: lifecycle.Actor{Voice: lifecycle.Worker, Name: platform.UserWorker}, Attempt: 1, Message: "It failed."}
	d, err := lifecycle.Decide(run, cmd, run.UpdatedAt.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	row := step{0, run, d}.row()
	row.EventTerm = 3000
	body, err := json.Marshal([]stepRow{row})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// of finds the scan of a table. What is looked at is counted for each time that the scan begins anew.
func (p planned) of(alias string) (index string, looked int) {
	if p.Alias == alias && p.Index != "" {
		return p.Index, p.Rows + p.Removed
	}
	if p.Alias == alias && p.Type == "Bitmap Heap Scan" {
		return p.Plans[0].Index, p.Rows + p.Removed
	}
	for _, below := range p.Plans {
		if index, looked = below.of(alias); index != "" {
			return index, looked
		}
	}
	return "", 0
}

// Catches a statement that PostgreSQL compiles before each execution because it guesses it to be long: a hundred milliseconds for a step.
func TestNothingIsCompiled(t *testing.T) {
	t.Parallel()
	var jit string
	if err := openSmall(t, 1).db.GetContext(t.Context(), &jit, `SHOW jit`); err != nil || jit != "off" {
		t.Errorf("jit is %q, %v", jit, err)
	}
}
