package main

import (
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store/storetest"
)

// The role that all tests of this service run under cannot change anything, whatever code it is made to run. Catches a grant too many;
// a grant too few fails the other tests.
func TestQueryCannotWrite(t *testing.T) {
	t.Parallel()
	q := open(t)
	run := q.In(t, lifecycle.WF2Des, lifecycle.Completed)
	reader, err := sqlx.Open("postgres", storetest.Reader(t, q.World.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var tables []string
	if err := q.SQL.Select(&tables, `SELECT format('%I', relname) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'`); err != nil {
		t.Fatal(err)
	}
	if len(tables) < 9 {
		t.Fatalf("only %d tables were found", len(tables))
	}
	before := q.Content(t)
	statements := []string{`CREATE TABLE mine (id int)`, `SELECT id FROM wf2des FOR UPDATE`, `DROP TABLE wf2des`,
		`SET ROLE framerun`, `SELECT nextval('outbox_id_seq')`, `SELECT pg_read_file('/etc/hostname')`, `COPY wf2des TO PROGRAM 'true'`,
		`UPDATE wf2des SET prompt = 'x' WHERE id = '` + run.ID + `'`}
	for _, table := range tables {
		statements = append(statements, `DELETE FROM `+table, `INSERT INTO `+table+` DEFAULT VALUES`, `TRUNCATE `+table)
	}
	for _, hidden := range []string{"outbox", "idempotency_key", "organization", "page_import"} {
		statements = append(statements, `SELECT * FROM `+hidden)
	}
	for _, statement := range statements {
		if _, err := reader.Exec(statement); pq.As(err, "42501") == nil {
			t.Errorf("%s: %v; want permission denied", statement, err)
		}
	}
	for table, content := range q.Content(t) {
		if content != before[table] {
			t.Errorf("%s has changed", table)
		}
	}
}
