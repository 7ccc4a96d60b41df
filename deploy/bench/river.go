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

// peer is River, the job queue on PostgreSQL that a Go team would pick, with its tables in the database beside the suite's. It runs inside
// this program, without HTTP.
type peer struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
}

// riverPool is where River was quickest of 8, 16, 32 and 64 connections, about.
const riverPool = 16

func (h *house) startRiver(ctx context.Context, database string) (*peer, error) {
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

// event holds what the public feed would be told of a new run.
type event struct {
	Subject, Type  string
	Sequence       int
	OrganizationID int64
}

// Kind implements river.JobArgs.
func (event) Kind() string { return "event" }

// insertTx is a transaction a job: BEGIN, InsertTx, COMMIT.
func (p *peer) insertTx() contender {
	return p.inserting("River, InsertTx", 1, func(ctx context.Context, first, _ int) error {
		return pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
			_, err := p.client.InsertTx(ctx, tx, jobOf(int64(first)), nil)
			return err
		})
	})
}

// insertRun is how a team would write a run that keeps runs and timelines in the suite's tables and leaves to River what the outbox does: the
// row, its line, job and event in one transaction.
func (p *peer) insertRun(s *suite) contender {
	var base int64
	var count int
	who := p.inserting("River, run + line + InsertManyTx(2)", 1, func(ctx context.Context, i, _ int) error {
		return pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error { return p.run(ctx, tx, jobOf(base+int64(i))) })
	})
	empty := who.prepare
	who.prepare = func(ctx context.Context, n int) error {
		base, count = s.take(n), n
		return empty(ctx, n)
	}
	who.stored = func(ctx context.Context) (int, error) {
		var jobs int
		if err := p.pool.QueryRow(ctx, `SELECT count(*) FROM river_job`).Scan(&jobs); err != nil {
			return 0, err
		}
		runs, err := rows.Count(ctx, s.beside, "wf2des", base, count, `EXISTS (SELECT FROM run_event WHERE kind = 'wf2des' AND run_id = wf2des.id)`)
		return min(runs, jobs/2), err
	}
	return who
}

func (p *peer) run(ctx context.Context, tx pgx.Tx, j job) error {
	if _, err := tx.Exec(ctx, `INSERT INTO wf2des (id, organization_id, project_id, figma_file_key, wf_node_id, screen_id, prompt, status, phase,
	trigger_surface, created_by, updated_by) VALUES ($1, $2, $3, $4, $5, $6, $7, '0', '0', '1', 'bench-user-000', 'bench-user-000')`,
		j.JobID, j.OrganizationID, j.ProjectID, j.FigmaFileKey, j.WFNodeID, j.ScreenID, j.Prompt); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO run_event (kind, run_id, seq, what, outcome, actor_kind, actor, to_state, attempt, version, at)
VALUES ('wf2des', $1, 1, 'created', 'applied', 'user', 'bench-user-000', 'parsing', 1, now(), now())`, j.JobID); err != nil {
		return err
	}
	_, err := p.client.InsertManyTx(ctx, tx, []river.InsertManyParams{{Args: j},
		{Args: event{Subject: "wf2des/" + j.JobID, Type: "run.framerun.wf2des.created", Sequence: 1, OrganizationID: j.OrganizationID}}})
	return err
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
