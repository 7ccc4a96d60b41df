package store

import (
	"strings"
	"testing"

	"framerun.dev/pkg/lifecycle"
	"github.com/lib/pq"
)

// What operators and retention ask for is found by an index, however large the tables are. Catches a condition that PostgreSQL does not
// recognise in its index, and an index that is gone.
func TestOperatorsAndRetentionReadByIndexes(t *testing.T) {
	t.Parallel()
	s := openSmall(t, 2)
	for _, statement := range []string{
		`INSERT INTO outbox (destination, kind, run_id, attempt, stage, state, settled_at)
			SELECT 'jobs', 'wf2des', 'run ' || n, 1, 'parse', state, CASE WHEN state <> 'pending' THEN now() END
			FROM generate_series(1, 5000) n, unnest(ARRAY['pending', 'skipped']) state`,
		`ANALYZE outbox`,
	} {
		if _, err := s.db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	ids, every := pq.Array([]string{"a", "b"}), pq.Array([]EntryState{Pending, Skipped, SetAside})
	for _, kind := range lifecycle.Kinds {
		table := string(kind)
		for _, c := range []struct {
			about, query string
			indexes      []string
			args         []any
		}{
			{"whole timelines", selectWhole, []string{"run_event_pkey"}, []any{kind, "", 1, 200}},
			{"deleted runs", selectDeleted, []string{"run_event_deleted_idx"}, []any{kind, 1, 200}},
			{"skipped entries", deleteSkipped, []string{"outbox_skipped_idx", "wf2des_pkey", "code2wf_pkey", "outbox_pkey"}, []any{1, 200}},
			{"ended runs", lockEnded[kind], []string{table + "_pkey"}, []any{ids, 1}},
			{"what is kept", deleteKept[kind], []string{table + "_pkey", "outbox_run_idx", "run_event_pkey"}, []any{ids}},
			{"a survey", surveys[kind][false], []string{table + "_pkey"}, []any{ids, ids, 0, 0, "", "", 20}},
			{"last lines", selectLastLines, []string{"run_event_pkey"}, []any{pq.Array(lifecycle.Kinds), ids}},
			{"entries of runs", selectEntriesOfRuns, []string{"outbox_run_idx"}, []any{every, "", 10, ids}},
			{"entries", selectEntries, []string{"outbox_pkey"}, []any{every, "", 10, pq.Array([]string(nil))}},
		} {
			st, err := s.db.PreparexContext(t.Context(), `EXPLAIN `+c.query)
			if err != nil {
				t.Fatal(c.about, err)
			}
			var lines []string
			if err := st.SelectContext(t.Context(), &lines, c.args...); err != nil {
				t.Fatal(c.about, err)
			}
			plan := strings.Join(lines, "\n")
			for _, index := range c.indexes {
				if !strings.Contains(plan, " "+index) {
					t.Errorf("%s, %s: %s is not used:\n%s", kind, c.about, index, plan)
				}
			}
			if strings.Contains(plan, "Seq Scan") {
				t.Errorf("%s, %s: a whole table is read:\n%s", kind, c.about, plan)
			}
		}
	}
}
