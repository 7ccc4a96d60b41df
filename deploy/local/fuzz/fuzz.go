// Package fuzz is for finding the request that breaks the suite: it sends very many, very varied ones to the real services,
// judges every answer, keeps account of what the answers tell, and holds that account against PostgreSQL.
//
// Each worker has runs, files and a subject of its own, so that whatever happens to them can be put down to its requests. All that
// a worker does follows from the seed, its number and the answers.
package fuzz

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"
	"time"

	_ "github.com/lib/pq" // the driver named "postgres"

	"framerun.dev/deploy/local/stack"
)

// Config says how much is sent, and to whom.
type Config struct {
	Stack    *stack.Stack // with an empty database, without a worker, configured with Env
	Requests int
	Seed     uint64
	Workers  int       // 0: 8
	Out      io.Writer // told of the progress every few seconds
}

// Env is the configuration that the services need to be asked so much: their log tells errors only, and a caller is told to wait
// soon enough to see it.
var Env = map[string]map[string]string{
	"intake": {"LOG_LEVEL": "warn", "CREATE_RATE": "200", "CREATE_BURST": "40"},
	"status": {"LOG_LEVEL": "warn", // deadlines that are watched and never missed, however slow the machine
		"PARSING_DEADLINE": "24h", "CONFIRM_DEADLINE": "24h", "ASSEMBLING_DEADLINE": "24h", "PROCESSING_DEADLINE": "24h"},
	"interaction": {"LOG_LEVEL": "warn"}, "query": {"LOG_LEVEL": "warn"},
}

// Run sends the requests, compares, and reports. The error is one of its own means; what is wrong with the suite is in the report.
func Run(ctx context.Context, c Config) (*Report, error) {
	if c.Workers == 0 {
		c.Workers = 8
	}
	db, err := sql.Open("postgres", c.Stack.Address().Postgres)
	if err != nil {
		return nil, fmt.Errorf("fuzz: %w", err)
	}
	defer db.Close()
	report := newReport(c)
	workers := make([]*worker, c.Workers)
	for i := range workers {
		if workers[i], err = newWorker(ctx, c, db, i, report); err != nil {
			return nil, err
		}
	}
	stop := report.tell(c)
	err = send(ctx, c, workers)
	stop()
	if err == nil {
		err = finish(ctx, c, db, workers, report)
	}
	return report, err
}

func newWorker(ctx context.Context, c Config, db *sql.DB, number int, report *Report) (*worker, error) {
	p, err := newPeople(ctx, c.Stack, db, number)
	if err != nil {
		return nil, err
	}
	w := &worker{number: number, db: db, people: p, book: newBook(p), wires: map[string]*wire{}, report: report}
	w.gen = newGenerator(c.Seed, number, p, w.book)
	addresses := map[string]string{"gateway": c.Stack.Address().Gateway}
	for name, service := range c.Stack.Address().Services {
		addresses[name] = service.URL
	}
	for name, address := range addresses {
		u, err := url.Parse(address)
		if err != nil {
			return nil, fmt.Errorf("fuzz: %w", err)
		}
		w.wires[name] = &wire{address: u.Host}
	}
	return w, nil
}

// send lets all workers send their shares.
func send(ctx context.Context, c Config, workers []*worker) error {
	began := time.Now()
	errs := make([]error, len(workers))
	var sending sync.WaitGroup
	for i, w := range workers {
		share := c.Requests / len(workers)
		if i < c.Requests%len(workers) {
			share++
		}
		sending.Go(func() { errs[i] = w.run(ctx, share) })
	}
	sending.Wait()
	workers[0].report.Took = time.Since(began)
	return errors.Join(append(errs, ctx.Err())...)
}

// finish compares everything once more, when nothing moves any longer.
func finish(ctx context.Context, c Config, db *sql.DB, workers []*worker, report *Report) error {
	books := make([]*book, len(workers))
	for i, w := range workers {
		books[i] = w.book
		differences, err := w.book.compareAll(ctx, db)
		if err != nil {
			return err
		}
		for _, d := range differences {
			report.fail(Failure{Worker: w.number, What: "at the end: " + d})
		}
	}
	if err := drained(ctx, db); err != nil {
		return err
	}
	for _, compare := range []func() ([]string, error){
		func() ([]string, error) { return totals(ctx, db, books) },
		func() ([]string, error) { return broken(ctx, db) },
		func() ([]string, error) { return queued(ctx, db, c.Stack, books) },
		func() ([]string, error) { return services(ctx, c.Stack) },
	} {
		differences, err := compare()
		if err != nil {
			return err
		}
		for _, d := range differences {
			report.fail(Failure{What: "at the end: " + d})
		}
	}
	return nil
}

// tell prints the progress until it is stopped.
func (p *Report) tell(c Config) (stop func()) {
	began, done := time.Now(), make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Second):
			}
			p.mu.Lock()
			n, failures := p.Requests, len(p.Failures)
			p.mu.Unlock()
			fmt.Fprintf(c.Out, "%9d of %d, %.0f a second, %d failures\n", n, c.Requests, float64(n)/time.Since(began).Seconds(), failures)
		}
	})
	return func() { close(done); telling.Wait() }
}
