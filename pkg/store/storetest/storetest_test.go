package storetest

import (
	"database/sql"
	"testing"

	"framerun.dev/migrations/platform"
)

func TestMain(m *testing.M) { Main(m) }

func connect(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// Catches a template that lacks its rows, and databases that are not one test's own.
func TestNewIsFreshAndSeeded(t *testing.T) {
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			db := connect(t, New(t))
			var imports int
			row := db.QueryRowContext(t.Context(), `SELECT count(*) FROM page_import WHERE id = $1 AND status = '1'`, platform.PageImportID)
			if err := row.Scan(&imports); err != nil || imports != 1 {
				t.Fatalf("finished page imports: %d, %v; want 1", imports, err)
			}
			// The same key in each database: in a shared one the second insert would fail.
			if _, err := db.ExecContext(t.Context(), `INSERT INTO "user" (cognito_sub) VALUES ('somebody')`); err != nil {
				t.Fatal(err)
			}
		})
	}
}
