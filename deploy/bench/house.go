package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"framerun.dev/deploy/bench/pgbench"
	"framerun.dev/deploy/bench/rows"
	"framerun.dev/migrations"
	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/localpg"
	_ "github.com/lib/pq" // the driver named "postgres"
)

// house is the one PostgreSQL server that both sides of every contest use, durable as in production, and where the programs are.
type house struct {
	bin, routes string // the folder of the built programs, the route file
	portBase    int
	pgbench     string // empty where there is none
	seconds     int    // how long a baseline runs that is bounded by time; 0: by count, as all others
	patience    time.Duration
	dir         string // for logs; goes with the house
	log         io.Writer
	server      *localpg.Server
	databases   []*sql.DB
}

// settings are for both sides alike: room for the 256 connections of pgbench, memory as a small production server has it.
var settings = map[string]string{"max_connections": "450", "shared_buffers": "1GB", "max_wal_size": "4GB"}

func openHouse(ctx context.Context, c config) (*house, error) {
	h := &house{bin: c.bin, routes: c.routes, portBase: c.portBase, log: c.log, patience: c.patience,
		seconds: int(c.pace.length.Round(time.Second).Seconds())}
	var err error
	if h.pgbench, err = pgbench.Find(); err != nil {
		fmt.Fprintln(h.log, err)
	}
	if h.dir, err = os.MkdirTemp("", "framerun-bench-"); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	if h.server, err = localpg.Start(ctx, localpg.Config{Port: c.portBase + postgresPort, Durable: true, Settings: settings,
		LogFile: filepath.Join(h.dir, "postgres.log")}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(h.dir))
	}
	return h, nil
}

func (h *house) close() error {
	for _, db := range h.databases {
		db.Close()
	}
	return errors.Join(h.server.Stop(), os.RemoveAll(h.dir))
}

// open connects to one of the server's databases.
func (h *house) open(name string) (*sql.DB, error) {
	db, err := sql.Open("postgres", h.server.URL(name))
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	db.SetMaxOpenConns(4)
	h.databases = append(h.databases, db)
	return db, nil
}

// found makes a database with the suite's tables and a history of so many rows. Nobody is connected to it afterwards.
func (h *house) found(ctx context.Context, name string, history int64) error {
	if err := h.command(ctx, `CREATE DATABASE `+name); err != nil {
		return err
	}
	db, err := sql.Open("postgres", h.server.URL(name))
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer db.Close()
	for _, up := range []func(context.Context, *sql.DB) error{platform.Up, migrations.Up, platform.Seed} {
		if err := up(ctx, db); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
	}
	if err := rows.Platform(ctx, db, callers); err != nil {
		return err
	}
	return rows.History(ctx, db, 1, history)
}

// copy makes a database that is like another one to the last page.
func (h *house) copy(ctx context.Context, from, to string) error {
	return h.command(ctx, `CREATE DATABASE `+to+` TEMPLATE `+from)
}

func (h *house) command(ctx context.Context, statement string) error {
	db, err := sql.Open("postgres", h.server.URL("postgres"))
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("bench: %s: %w", statement, err)
	}
	return nil
}
