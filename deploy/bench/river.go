package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"framerun.dev/deploy/bench/load"
	"framerun.dev/deploy/bench/rows"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// peer is River, the job queue on PostgreSQL that a Go team would pick, in a database of its own on the same server. It runs inside this
// program, without HTTP, and stores one job where the suite stores run, timeline, job and event.
type peer struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
}

// riverPool is where River was quickest of 8, 16, 32 and 64 connections, about.
const riverPool = 16

func (h *house) startRiver(ctx context.Context) (*peer, error) {
	const database = "river"
	if err := h.command(ctx, `DROP DATABASE IF EXISTS `+database); err != nil {
		return nil, err
	}
	if err := h.command(ctx, `CREATE DATABASE `+database); err != nil {
		return nil, err
	}
	c, err := pgxpool.ParseConfig(h.server.URL(database))
	if err != nil {
		return nil, fmt.Errorf("bench: river: %w", err)
	}
	c.MaxConns = riverPool
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("bench: river: %w", err)
	}
	p := &peer{pool: pool}
	if err := p.open(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("bench: river: %w", err)
	}
	return p, nil
}

func (p *peer) open(ctx context.Context) error {
	driver := riverpgxv5.New(p.pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	p.client, err = river.NewClient(driver, &river.Config{})
	return err
}

func (p *peer) close() { p.pool.Close() }

// job holds what a message to a worker holds.
type job struct {
	JobID          string `json:"job_id"`
	Edge           string `json:"edge"`
	Stage          string `json:"stage"`
	Attempt        int    `json:"attempt"`
	OrganizationID int64  `json:"organization_id"`
	ProjectID      int64  `json:"project_id"`
	FigmaFileKey   string `json:"figma_file_key"`
	WFNodeID       string `json:"wf_node_id"`
	ScreenID       string `json:"screen_id"`
	Prompt         string `json:"prompt"`
}

// Kind implements river.JobArgs.
func (job) Kind() string { return "wf2des" }

func jobOf(n int64) job {
	return job{JobID: rows.ID(n), Edge: "wf2des", Stage: "parse", Attempt: 1, OrganizationID: rows.Organization, ProjectID: rows.Project,
		FigmaFileKey: rows.FileKey(n), WFNodeID: fmt.Sprintf("9:%d", n), ScreenID: "Sign in", Prompt: rows.Prompt}
}

// insertTx is a transaction a job: BEGIN, InsertTx, COMMIT.
func (p *peer) insertTx() contender {
	return p.inserting("River, InsertTx", 1, func(ctx context.Context, first, _ int) error {
		tx, err := p.pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(ctx)
		if _, err := p.client.InsertTx(ctx, tx, jobOf(int64(first)), nil); err != nil {
			return err
		}
		return tx.Commit(ctx)
	})
}

// manyAtOnce is how many jobs InsertMany is given at once.
const manyAtOnce = 100

func (p *peer) insertMany() contender {
	return p.inserting(fmt.Sprintf("River, InsertMany(%d)", manyAtOnce), manyAtOnce, func(ctx context.Context, first, n int) error {
		many := make([]river.InsertManyParams, n)
		for i := range many {
			many[i] = river.InsertManyParams{Args: jobOf(int64(first + i))}
		}
		_, err := p.client.InsertMany(ctx, many)
		return err
	})
}

// inserting shares n jobs out among goroutines, up to step at a time. A job is as late as the call it went with.
func (p *peer) inserting(name string, step int, insert func(ctx context.Context, first, n int) error) contender {
	return contender{
		name: name, least: step,
		prepare: func(ctx context.Context, _ int) error { _, err := p.pool.Exec(ctx, `TRUNCATE river_job`); return err },
		run: func(ctx context.Context, clients, n int) (load.Sample, error) {
			took, errs := make([]time.Duration, n), make([]error, clients)
			var next atomic.Int64
			var all sync.WaitGroup
			began := time.Now()
			for k := range clients {
				all.Go(func() {
					for errs[k] == nil {
						first := int(next.Add(int64(step))) - step
						if first >= n {
							return
						}
						count, asked := min(step, n-first), time.Now()
						errs[k] = insert(ctx, first, count)
						for i := range count {
							took[first+i] = time.Since(asked)
						}
					}
				})
			}
			all.Wait()
			return load.Of(took, time.Since(began)), errors.Join(errs...)
		},
		stored: func(ctx context.Context) (count int, err error) {
			err = p.pool.QueryRow(ctx, `SELECT count(*) FROM river_job`).Scan(&count)
			return count, err
		},
	}
}
