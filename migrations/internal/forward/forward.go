// Package forward brings a PostgreSQL schema up to date from numbered SQL files, safely when several programs
// start at once. It knows no way back: a mistake is mended by the next file.
package forward

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Ledger is a set of numbered SQL files and the table that remembers which of them a database has seen.
type Ledger struct {
	Files fs.FS
	Table string // a plain SQL name
}

// Up applies what is missing, in order, each file in a transaction of its own unless it says otherwise. Of
// several callers one works and the others wait for it, up to a minute.
func (l Ledger) Up(ctx context.Context, db *sql.DB) error {
	// Taken by trying once a second: a waiting statement would hold a snapshot, and CREATE INDEX CONCURRENTLY in the
	// session that works would then wait for the one that waits for it.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 60))
	if err != nil {
		return fmt.Errorf("migrations: preparing the lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, l.Files,
		goose.WithTableName(l.Table),
		goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true),
	)
	if err != nil {
		return fmt.Errorf("migrations: reading the files: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrations: applying: %w", err)
	}
	return nil
}

// Version is the number of the newest file applied, 0 for a database that has seen none. It only reads, so it
// serves a read-only role and waits for nobody.
func (l Ledger) Version(ctx context.Context, db *sql.DB) (int64, error) {
	var seen bool
	if err := db.QueryRowContext(ctx, `SELECT to_regclass($1) IS NOT NULL`, l.Table).Scan(&seen); err != nil {
		return 0, fmt.Errorf("migrations: reading the version: %w", err)
	}
	if !seen {
		return 0, nil
	}
	var version int64
	row := db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM `+l.Table)
	if err := row.Scan(&version); err != nil {
		return 0, fmt.Errorf("migrations: reading the version: %w", err)
	}
	return version, nil
}
