// Package platform makes stand-ins for the tables that belong to the platform and that the suite's own tables refer to,
// so that the suite can run and be tested where there is no platform. Production never runs it.
package platform

import (
	"context"
	"database/sql"
	"embed"

	"framerun.dev/migrations/internal/forward"
)

//go:embed *.sql
var files embed.FS

// The table has a name of its own, so that the suite's versions count the same with and without stand-ins.
func ledger() forward.Ledger {
	return forward.Ledger{Files: files, Table: "platform_goose_db_version"}
}

// Up creates the stand-ins that db lacks. Like the suite's own migrations it may run in several programs at once.
func Up(ctx context.Context, db *sql.DB) error {
	return ledger().Up(ctx, db)
}

// Version is the number of the newest stand-in migration applied to db, 0 if there is none. It only reads.
func Version(ctx context.Context, db *sql.DB) (int64, error) {
	return ledger().Version(ctx, db)
}
