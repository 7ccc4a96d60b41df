// Package migrations gives a PostgreSQL database the suite's own tables: the two of the seeds and those
// beside them. The tables of the platform, which they refer to, must be there already (see the package platform).
package migrations

import (
	"context"
	"database/sql"
	"embed"

	"framerun.dev/migrations/internal/forward"
)

//go:embed *.sql
var files embed.FS

func ledger() forward.Ledger {
	return forward.Ledger{Files: files, Table: "goose_db_version"}
}

// Up applies every migration that db has not seen yet. It may run in several programs at once: one works, the
// others wait for it, up to a minute. It takes one connection of db.
func Up(ctx context.Context, db *sql.DB) error {
	return ledger().Up(ctx, db)
}

// Version is the number of the newest migration applied to db, 0 if there is none. It only reads.
func Version(ctx context.Context, db *sql.DB) (int64, error) {
	return ledger().Version(ctx, db)
}
