package main

import (
	"context"
	"database/sql"
	"encoding/json/v2"
	"fmt"
	"time"
	"uuid"

	"framerun.dev/deploy/bench/load"
	"framerun.dev/deploy/bench/pgbench"
	"framerun.dev/deploy/bench/rows"
	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
)

const suiteName = "Framerun"

// requests is a round's worth of requests, ready to be sent.
type requests [][]byte

func (r requests) at(i int) []byte { return r[i] }

// create is POST of fresh runs: of nodes that no run holds, and for code2wf simply of new runs.
func (s *suite) create(kind lifecycle.Kind) contender {
	var ready requests
	var since string
	return contender{
		name: suiteName, service: "intake",
		prepare: func(_ context.Context, n int) (err error) {
			ready, err = s.creations(kind, s.take(n), n)
			since = newest()
			return err
		},
		run: func(ctx context.Context, clients, n int) (load.Sample, error) {
			return load.Plan{Address: s.address("intake"), Clients: clients, Count: n, Request: ready.at, Status: 201}.Run(ctx)
		},
		stored: func(ctx context.Context) (count int, err error) {
			err = s.db.QueryRowContext(ctx, `SELECT count(*) FROM `+string(kind)+` WHERE id > $1`, since).Scan(&count)
			return count, err
		},
	}
}

// newest is smaller than every UUIDv7 that will be made from now on, and greater than those made until a millisecond ago.
func newest() string {
	h := fmt.Sprintf("%012x", time.Now().UnixMilli())
	return h[:8] + "-" + h[8:]
}

func (s *suite) creations(kind lifecycle.Kind, first int64, n int) (requests, error) {
	ready := make(requests, n)
	path := fmt.Sprintf("/v1/projects/%d/%s", rows.Project, kind)
	for i := range ready {
		number := first + int64(i)
		body := map[string]any{"figmaFileKey": rows.FileKey(number), "screenId": "Sign in"}
		if kind == lifecycle.WF2Des {
			body["wfNodeId"], body["prompt"] = fmt.Sprintf("9:%d", number), rows.Prompt
		} else {
			body["pageImportId"] = platform.PageImportID
		}
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		ready[i] = load.Request("POST", path, s.asPerson(i), raw)
	}
	return ready, nil
}

// complete is the webhook that ends a run, each signed by its worker beforehand.
func (s *suite) complete() contender {
	return s.transition("status", lifecycle.Assembling, "status = '1'", `"outcome":"applied"`, func(i int, id string) ([]byte, error) {
		return s.webhook(id, map[string]any{"event": "completed", "result_url": "wf2des/" + id + "/1/result.json", "flag_count": 2,
			"score": 0.9133, "score_version": "ds@1.0"})
	})
}

func (s *suite) webhook(id string, word map[string]any) ([]byte, error) {
	word["job_id"], word["attempt"] = id, 1
	body, err := json.Marshal(word)
	if err != nil {
		return nil, err
	}
	header := s.signer.Sign("msg_"+uuid.NewV7().String(), time.Now(), body)
	header.Set("Content-Type", "application/json")
	return load.Request("POST", "/v1/ai-status", header, body), nil
}

// confirm is the designer's word.
func (s *suite) confirm() contender {
	body := []byte(`{"decision":"confirm","attempt":1}`)
	return s.transition("interaction", lifecycle.AwaitingConfirm, "phase = '2'", `"phase":"assemble"`, func(i int, id string) ([]byte, error) {
		return load.Request("POST", runPath(id)+"/confirm", s.asPerson(i), body), nil
	})
}

func runPath(id string) string { return fmt.Sprintf("/v1/projects/%d/wf2des/%s", rows.Project, id) }

// transition moves runs on that stand in a state, each one once. What holds afterwards is said twice: in SQL, and as a part of a good
// answer.
func (s *suite) transition(service string, from lifecycle.State, then, holds string, request func(i int, id string) ([]byte, error)) contender {
	var ready requests
	var first int64
	var count int
	return contender{
		name: suiteName, service: service,
		prepare: func(ctx context.Context, n int) (err error) {
			first, count = s.take(n), n
			ready = make(requests, n)
			for i := range ready {
				if ready[i], err = request(i, rows.ID(first+int64(i))); err != nil {
					return err
				}
			}
			return rows.Open(ctx, s.db, from, first, n)
		},
		run: func(ctx context.Context, clients, n int) (load.Sample, error) {
			return load.Plan{Address: s.address(service), Clients: clients, Count: n, Request: ready.at, Status: 200, Holds: holds}.Run(ctx)
		},
		stored: func(ctx context.Context) (int, error) { return rows.Count(ctx, s.db, "wf2des", first, count, then) },
	}
}

// script is a pgbench baseline that writes, on the database beside the suite's.
type script struct {
	name  string
	text  string
	from  lifecycle.State // what the rows are that it works on; lifecycle.None: it makes them
	table string
	then  string // what holds for each of its rows afterwards
}

func (s *suite) writing(c script) contender {
	var first int64
	var count int
	return contender{
		name: c.name, least: pgbench.Least,
		prepare: func(ctx context.Context, n int) error {
			first, count = s.take(n), n
			if c.from == lifecycle.None {
				return nil
			}
			return rows.Open(ctx, s.beside, c.from, first, n)
		},
		run: func(ctx context.Context, clients, n int) (load.Sample, error) {
			return pgbench.Run{Path: s.pgbench, URL: s.besideAt, Script: c.text, Clients: clients, Count: n, First: first}.Do(ctx)
		},
		stored: func(ctx context.Context) (int, error) { return written(ctx, s.beside, c, first, count) },
	}
}

// written counts rows that have become what they should and have told of it in timeline and outbox.
func written(ctx context.Context, db *sql.DB, c script, first int64, n int) (int, error) {
	told := `EXISTS (SELECT FROM outbox WHERE run_id = ` + c.table + `.id)`
	if c.from == lifecycle.None {
		told += ` AND EXISTS (SELECT FROM run_event WHERE kind = '` + c.table + `' AND run_id = ` + c.table + `.id)`
	}
	return rows.Count(ctx, db, c.table, first, n, c.then+` AND `+told)
}

// against puts pgbench's baselines beside the suite; none where there is no pgbench.
func (s *suite) against(ours contender, scripts ...script) []contender {
	all := []contender{ours}
	if s.pgbench == "" {
		return all
	}
	for _, c := range scripts {
		all = append(all, s.writing(c))
	}
	return all
}
