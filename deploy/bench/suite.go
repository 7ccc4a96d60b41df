package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"framerun.dev/deploy/bench/rows"
	"framerun.dev/deploy/local/stack"
	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/auth/issuer"
)

// callers is how many people ask, each with a token of their own.
const callers = 64

// suite is the running suite on a database of the house, with another database beside it for what is compared.
type suite struct {
	*house
	stack    *stack.Stack
	at       stack.Address
	db       *sql.DB // the suite's
	beside   *sql.DB // the baselines', with the same tables and history
	besideAt string

	database, besideDatabase string
	alone                    *suite // see without; nil until it is needed

	tokens  []string
	signer  *auth.Webhooks
	next    int64 // the first number that no row has yet, in either database
	dropped int   // outbox entries that the relay had not carried away in time
}

// start runs the suite on the database: all as in production, but that no worker takes jobs from the queues and that no caller is
// held to a rate. Processes are fresh, so that memory is of what is measured now.
func (h *house) start(ctx context.Context, database, beside string) (*suite, error) {
	return h.startAt(ctx, database, beside, h.portBase, nil)
}

// startAt is start on other ports, with some variables for all services.
func (h *house) startAt(ctx context.Context, database, beside string, base int, variables map[string]string) (*suite, error) {
	s := &suite{house: h, database: database, besideDatabase: beside, besideAt: h.server.URL(beside), next: rows.FirstOpen}
	env := map[string]map[string]string{"intake": {"CREATE_RATE": "0"}, // and the rows of the history have no deadline
		"status":      {"PARSING_DEADLINE": "0", "ASSEMBLING_DEADLINE": "0", "PROCESSING_DEADLINE": "0"},
		"interaction": {}, "query": {}}
	for _, own := range env {
		own["PROFILING"] = "true"
		maps.Copy(own, variables)
	}
	var err error
	if s.stack, err = stack.Start(ctx, stack.Config{Dir: filepath.Join(h.dir, fmt.Sprint(database, base)), Bin: h.bin, Routes: h.routes, PortBase: base,
		Worker: "none", DatabaseURL: h.server.URL(database), Log: h.log, Env: env}); err != nil {
		return nil, err
	}
	s.at = s.stack.Address()
	if err := s.prepare(ctx, database, beside); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// alonePorts is where the second suite begins, behind all ports of the first and of what is compared.
const alonePorts = 40

// without is a contender of a second suite, on the same database, that does the same without group commit: one transaction a request.
func (s *suite) without(ctx context.Context, of func(*suite) contender) (contender, error) {
	if s.alone == nil {
		alone, err := s.startAt(ctx, s.database, s.besideDatabase, s.portBase+alonePorts, map[string]string{"GROUP_COMMIT": "false"})
		if err != nil {
			return contender{}, err
		}
		alone.next += 10_000_000_000 // its nodes are others than the first suite's
		s.alone = alone
	}
	who := of(s.alone)
	who.name, who.service = suiteName+", one transaction a request", ""
	return who, nil
}

func (s *suite) prepare(ctx context.Context, database, beside string) (err error) {
	if s.db, err = s.open(database); err != nil {
		return err
	}
	if s.beside, err = s.open(beside); err != nil {
		return err
	}
	if s.signer, err = auth.NewWebhooks([]string{s.at.Webhook.Secret}, time.Now); err != nil {
		return err
	}
	for k := range callers {
		token, err := s.stack.Mint(issuer.Claims{Subject: rows.Caller(k), ClientID: stack.PluginClient,
			OrganizationID: rows.Organization, Lifetime: 24 * time.Hour})
		if err != nil {
			return err
		}
		s.tokens = append(s.tokens, token)
	}
	return s.resume(ctx)
}

// resume goes on counting behind whatever earlier suites have made in these databases.
func (s *suite) resume(ctx context.Context) error {
	for _, db := range []*sql.DB{s.db, s.beside} {
		var last int64
		err := db.QueryRowContext(ctx, `SELECT coalesce(max(split_part(wf_node_id, ':', 2)::bigint), 0)
			FROM wf2des WHERE id > $1 AND wf_node_id LIKE '9:%'`, rows.ID(rows.FirstOpen-1)).Scan(&last)
		if err != nil {
			return fmt.Errorf("bench: %w", err)
		}
		s.next = max(s.next, last+1)
	}
	return nil
}

func (s *suite) stop() error {
	var err error
	if s.alone != nil {
		err = s.alone.stop()
	}
	return errors.Join(err, s.stack.Stop())
}

// take reserves n numbers and returns the first.
func (s *suite) take(n int) int64 {
	first := s.next
	s.next += int64(n)
	return first
}

// asPerson is the header of a request by the k-th caller.
func (s *suite) asPerson(k int) http.Header {
	return http.Header{"Authorization": {"Bearer " + s.tokens[k%len(s.tokens)]}, "Content-Type": {"application/json"}}
}

// address is a service's host:port.
func (s *suite) address(service string) string {
	return strings.TrimPrefix(s.at.Services[service].URL, "http://")
}

// settled waits until the outbox of the suite is empty, so that the relay's work for one round does not burden the next. What takes
// longer than a little while is dropped: it would be measured by nobody.
func (s *suite) settled(ctx context.Context) error {
	databases := []*sql.DB{s.beside}
	if err := s.drained(ctx, s.patience); errors.Is(err, errBacklog) {
		databases = append(databases, s.db)
		var left int
		if err := s.db.QueryRowContext(ctx, `SELECT count(*) FROM outbox WHERE state = 'pending'`).Scan(&left); err != nil {
			return fmt.Errorf("bench: the outbox: %w", err)
		}
		s.dropped += left
	} else if err != nil {
		return err
	}
	for _, db := range databases {
		if _, err := db.ExecContext(ctx, `TRUNCATE outbox`); err != nil {
			return fmt.Errorf("bench: the outbox: %w", err)
		}
	}
	return nil
}

var errBacklog = errors.New("bench: the outbox is not empty in time")

// drained waits until nothing in the suite's outbox is pending. Error: errBacklog.
func (s *suite) drained(ctx context.Context, within time.Duration) error {
	for deadline := time.Now().Add(within); ; {
		var pending bool
		if err := s.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM outbox WHERE state = 'pending')`).Scan(&pending); err != nil {
			return fmt.Errorf("bench: the outbox: %w", err)
		}
		switch {
		case !pending:
			return nil
		case time.Now().After(deadline):
			return errBacklog
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// memory is the resident set of a service's process, in bytes; 0 when it cannot be read.
func (s *suite) memory(service string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.stack.Process(service)))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kilobytes, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			if err != nil {
				return 0
			}
			return kilobytes << 10
		}
	}
	return 0
}
