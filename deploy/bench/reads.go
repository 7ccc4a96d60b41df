package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"framerun.dev/deploy/bench/load"
	"framerun.dev/deploy/bench/pgbench"
	"framerun.dev/deploy/bench/rows"
	"framerun.dev/pkg/lifecycle"
)

// hotRuns is how many runs are polled at the same time in the hot contests.
const hotRuns = 64

// hot is what plugins do all day: many poll few runs, which do not change. With seen each shows the version it has, so that the answer is
// 304. The baseline is a bare net/http handler that is asked the same and writes the same bytes.
func (s *suite) hot(ctx context.Context, seen bool) ([]contender, error) {
	first := s.take(hotRuns)
	if err := rows.Open(ctx, s.db, lifecycle.Parsing, first, hotRuns); err != nil {
		return nil, err
	}
	status, ready := http.StatusOK, make(requests, hotRuns)
	if seen {
		status = http.StatusNotModified
	}
	var answer model
	for k := range hotRuns {
		path, header := runPath(rows.ID(first+int64(k))), s.asPerson(k)
		full, err := s.ask(ctx, path, header)
		if err != nil {
			return nil, err
		}
		if seen {
			header.Set("If-None-Match", full.Header.Get("ETag"))
		}
		if answer, err = s.ask(ctx, path, header); err != nil {
			return nil, err
		}
		if answer.Status != status {
			return nil, fmt.Errorf("bench: GET answers %d, not %d: %.300s", answer.Status, status, answer.Body)
		}
		ready[k] = load.Request("GET", path, header, nil)
	}
	return []contender{
		asking(suiteName, "query", ready, status, func() string { return s.address("query") }),
		s.bare(answer, ready),
	}, nil
}

// asking is a contender that sends the same few requests again and again.
func asking(name, service string, ready requests, status int, address func() string) contender {
	return contender{name: name, service: service, run: func(ctx context.Context, clients, n int) (load.Sample, error) {
		again := func(i int) []byte { return ready[i%len(ready)] }
		return load.Plan{Address: address(), Clients: clients, Count: n, Request: again, Status: status}.Run(ctx)
	}}
}

// model is one answer of the suite, for others to give.
type model struct {
	Status int
	Header http.Header
	Body   []byte
}

// ask asks query for something, as a client that has time.
func (s *suite) ask(ctx context.Context, path string, header http.Header) (model, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.at.Services["query"].URL+path, nil)
	if err != nil {
		return model{}, fmt.Errorf("bench: %w", err)
	}
	req.Header = header.Clone()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return model{}, fmt.Errorf("bench: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return model{}, fmt.Errorf("bench: %w", err)
	}
	return model{res.StatusCode, res.Header, body}, nil
}

// cold is GET of another run each time, so that every answer comes from PostgreSQL. The baseline is the same SELECT. Only a history
// shorter than what a memory holds brings runs back too soon.
func (s *suite) cold(history int64) []contender {
	runs := history / 2 // those of the project
	var next int64
	ours := contender{name: suiteName, service: "query", run: func(ctx context.Context, clients, n int) (load.Sample, error) {
		first := next
		next += int64(n)
		request := func(i int) []byte {
			return load.Request("GET", runPath(rows.ID(2+2*((first+int64(i))%runs))), s.asPerson(i), nil)
		}
		return load.Plan{Address: s.address("query"), Clients: clients, Count: n, Request: request, Status: 200, Holds: `"id":"`}.Run(ctx)
	}}
	return append([]contender{ours}, s.reading("pgbench, same SELECT", fmt.Sprintf(`\set k 2 + 2 * (:n %% %d)
SELECT %s FROM wf2des WHERE id = %s AND organization_id = 1 AND project_id = 1 AND deleted_at IS NULL`, runs, columns, rows.SQLID(":k::bigint")))...)
}

// columns are those of a whole run.
const columns = `id, organization_id, project_id, figma_file_key, screen_id, placement_target, status, attempt, flag_count, result_url,
	error_message, materialized_at, created_at, updated_at, deleted_at, created_by, updated_by, deleted_by, wf_node_id, edge, prompt,
	auto_confirm, trigger_surface, phase, feedback_status, score, score_version`

// listed is a list that the suite offers, and the query that it comes down to.
type listed struct{ parameters, where string }

var (
	newest50 = listed{"limit=50", ""}
	inbox50  = listed{"limit=50&materialized=false&figmaFileKey=" + rows.FileKey(7),
		" AND figma_file_key = '" + rows.FileKey(7) + "' AND status = '1' AND materialized_at IS NULL"}
)

// list is a page of 50 runs; the baseline is the same query (one row more tells whether there is another page). A list that is too slow
// for the suite's own bounds is a finding and no fault of the measuring.
func (s *suite) list(l listed) []contender {
	ready := make(requests, callers)
	for k := range ready {
		ready[k] = load.Request("GET", fmt.Sprintf("/v1/projects/%d/wf2des?%s", rows.Project, l.parameters), s.asPerson(k), nil)
	}
	ours := asking(suiteName, "query", ready, http.StatusOK, func() string { return s.address("query") })
	ours.lenient = true
	return append([]contender{ours}, s.reading("pgbench, same query", `SELECT `+columns+` FROM wf2des
WHERE organization_id = 1 AND project_id = 1 AND deleted_at IS NULL`+l.where+` ORDER BY created_at DESC, id DESC LIMIT 51`)...)
}

// reading is a pgbench baseline on the suite's own database, or none where there is no pgbench. It wears nothing out, so it is bounded by
// time: a slow query is not asked for long.
func (s *suite) reading(name, query string) []contender {
	if s.pgbench == "" {
		return nil
	}
	return []contender{{name: name, timed: s.seconds > 0, run: func(ctx context.Context, clients, n int) (load.Sample, error) {
		return pgbench.Run{Path: s.pgbench, URL: s.at.Postgres, Script: pgbench.One(query), Clients: clients, Count: n, Seconds: s.seconds}.Do(ctx)
	}}}
}
