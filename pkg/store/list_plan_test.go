package store

import (
	"encoding/json/v2"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store/storetest"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

func openSmall(t *testing.T, pool int) *Store {
	t.Helper()
	s, err := Open(storetest.New(t), Options{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Lists of ever other shapes go on side by side, and PostgreSQL does not remember all of them. Catches a statement that is closed
// while somebody uses it, and one that is never closed.
func TestRareQueriesAreForgotten(t *testing.T) {
	t.Parallel()
	s := openSmall(t, 4)
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for range 150 {
				if _, err := s.List(t.Context(), lifecycle.WF2Des, lifecycle.Tenant{}, Filter{}, Position{}, 1+rand.IntN(500)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	readers.Wait()
	for range 4 { // whichever connection it is
		var kept int
		if err := s.db.GetContext(t.Context(), &kept, `SELECT count(*) FROM pg_prepared_statements`); err != nil {
			t.Fatal(err)
		}
		if kept > rareMost+8 {
			t.Errorf("%d statements are kept in a connection", kept)
		}
	}
	if n := len(s.rare.texts); n > rareMost {
		t.Errorf("%d statements are kept", n)
	}
}

// history is 30,000 runs, half of them one project's, in 20 files; one in 50 is open, one in 25 failed, and of the completed one in five
// has not been placed.
var history = map[lifecycle.Kind]string{
	lifecycle.WF2Des: `
INSERT INTO wf2des (id, organization_id, project_id, figma_file_key, wf_node_id, screen_id, trigger_surface, status, phase, created_at, updated_at,
	created_by, updated_by, result_url, error_message, materialized_at, flag_count)
SELECT id, tenant, tenant, file, '1:' || n, 'screen', '1', status, CASE WHEN status = '0' THEN '1'::wf2des_phase END, made, made, 'x', 'x', 'key', 'no', placed, n % 3
FROM (SELECT n, ` + historyColumns + `) row`,
	lifecycle.Code2WF: `
INSERT INTO code2wf (id, organization_id, project_id, figma_file_key, page_import_id, screen_id, status, created_at, updated_at,
	created_by, updated_by, result_url, error_message, materialized_at, flag_count)
SELECT id, tenant, tenant, file, 'import', 'screen', status, made, made, 'x', 'x', 'key', 'no', placed, n % 3
FROM (SELECT n, ` + historyColumns + `) row`,
}

const historyColumns = `lpad(n::text, 36, '0') AS id, CASE WHEN n % 2 = 0 THEN 1 ELSE 100 + n % 7 END AS tenant, 'file ' || n / 2 % 20 AS file,
	now() - n * interval '1 minute' AS made, (CASE WHEN n % 50 < 2 THEN '0' WHEN n % 50 < 4 THEN '2' ELSE '1' END)::wf2des_status AS status,
	CASE WHEN n % 50 >= 4 AND n % 10 < 8 THEN now() END AS placed
FROM generate_series(1, 30000) n`

// Every list reads its page from the index that is made for it, in order and from where the page begins: nothing is sorted, and nothing
// of another tenant, or of an earlier page, is looked at. Catches a condition that PostgreSQL does not recognise in its index.
func TestListsReadTheirPageAndNoMore(t *testing.T) {
	t.Parallel()
	s := openSmall(t, 2)
	completed, deep := lifecycle.StatusCompleted, Position{CreatedAt: time.Now().Add(-20_000 * time.Minute), ID: strings.Repeat("9", 36)}
	for _, kind := range lifecycle.Kinds {
		for _, statement := range []string{`SET session_replication_role = replica`, history[kind], `RESET session_replication_role`, `ANALYZE ` + string(kind)} {
			if _, err := s.db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		for about, c := range map[string]struct {
			filter Filter
			index  string
			most   int // rows that may be looked at for a page of 51
		}{
			"all":                 {Filter{}, "_list_idx", 51},
			"of a file":           {Filter{FigmaFileKey: "file 7"}, "_file_list_idx", 51},
			"the inbox":           {Filter{Materialized: new(false)}, "_unsettled_idx", 51},
			"the inbox of a file": {Filter{FigmaFileKey: "file 7", Materialized: new(false)}, "_file_inbox_idx", 51},
			"open":                {Filter{Status: lifecycle.StatusProcessing}, "_unsettled_idx", 51},
			"failed":              {Filter{Status: lifecycle.StatusFailed}, "_unsettled_idx", 51},
			"completed":           {Filter{Status: completed}, "_list_idx", 60},
			"flagged":             {Filter{Flagged: new(true)}, "_list_idx", 80},
			"since":               {Filter{CreatedAfter: time.Now().Add(-28_000 * time.Minute)}, "_list_idx", 51},
			"until":               {Filter{CreatedBefore: deep.CreatedAt}, "_list_idx", 51},
		} {
			for _, after := range []Position{{}, deep} {
				query, args := selectList(columns[kind], kind, lifecycle.Tenant{OrganizationID: 1, ProjectID: 1}, c.filter, after, 51)
				index, looked, sorted := s.explain(t, query, args...)
				if index != string(kind)+c.index || looked > c.most || sorted {
					t.Errorf("%s, %s, after %q: %s, %d rows looked at, sorted: %t", kind, about, after.ID, index, looked, sorted)
				}
			}
		}
	}
}

// explain runs a list as List does and tells from which index it comes, how many rows were looked at, and whether they were sorted.
func (s *Store) explain(t *testing.T, query string, args ...any) (index string, looked int, sorted bool) {
	t.Helper()
	for n := s.plan(t, query, args...); ; n = n.Plans[0] {
		sorted = sorted || strings.Contains(n.Type, "Sort")
		if len(n.Plans) == 0 {
			return n.Index, n.Rows + n.Removed, sorted
		}
	}
}

// planned is a node of a plan that was carried out.
type planned struct {
	Type    string    `json:"Node Type"`
	Alias   string    `json:"Alias"`
	Index   string    `json:"Index Name"`
	Rows    int       `json:"Actual Rows"`
	Removed int       `json:"Rows Removed by Filter"`
	Plans   []planned `json:"Plans"`
}

// plan carries a query out with the plan that a prepared statement gets, which is made for any arguments, and gives that plan.
func (s *Store) plan(t *testing.T, query string, args ...any) planned {
	t.Helper()
	return s.planBefore(t, nil, query, args...)
}

// planBefore makes the plan, lets something happen, and then carries the query out.
func (s *Store) planBefore(t *testing.T, happens func(*sqlx.Conn) error, query string, args ...any) planned {
	t.Helper()
	conn, err := s.db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	quoted := make([]string, len(args))
	for i, arg := range args {
		if at, ok := arg.(time.Time); ok {
			arg = at.Format(time.RFC3339Nano)
		}
		quoted[i] = pq.QuoteLiteral(fmt.Sprint(arg))
	}
	execute := "EXECUTE planned"
	if len(args) > 0 {
		execute += "(" + strings.Join(quoted, ", ") + ")"
	}
	var text string
	_, err = conn.ExecContext(t.Context(), `PREPARE planned AS `+query)
	if err == nil && happens != nil {
		if _, err = conn.ExecContext(t.Context(), execute); err == nil {
			err = happens(conn)
		}
	}
	if err == nil {
		err = conn.GetContext(t.Context(), &text, `EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) `+execute)
	}
	if err == nil {
		_, err = conn.ExecContext(t.Context(), `DEALLOCATE planned`)
	}
	var plans []struct{ Plan planned }
	if err == nil {
		err = json.Unmarshal([]byte(text), &plans)
	}
	if err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan
}
