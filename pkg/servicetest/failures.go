package servicetest

import (
	"fmt"
	"strings"
	"testing"

	"framerun.dev/pkg/web"
)

// broken is what PostgreSQL says when it fails in a Failures test: all that must not leave.
const broken = `boom: SELECT * FROM wf2des WHERE key = ''AKIAIOSFODNN7EXAMPLE'' at postgres://app:hunter2@db.internal/x, arn:aws:iam::123456789012:role/x, /srv/app/main.go:12`

// inside are words of broken, and of what is put around it on the way.
var inside = []string{"boom", "SELECT", "AKIA", "hunter2", "postgres", "arn:", "/srv", ".go:", "pq:", "store:", "goroutine", "P0001"}

// Failures has PostgreSQL fail at every endpoint in a way that nobody expects. The caller is told nothing of it but that it was not at
// fault; the log is told the cause once, and no token. The database is of no use afterwards.
func Failures(t *testing.T, w *World, router *web.Router, o web.Options, endpoints []Endpoint) {
	t.Helper()
	var log Log
	o.Logger = log.Logger()
	c := w.ServeWith(t, router, o)
	leavesNoneOut(t, c, endpoints)
	type request struct {
		method, path, body string
		as                 Principal
	}
	var requests []request
	for _, e := range endpoints {
		for method, asked := range e.Asks {
			id, as := "", w.Owner
			if asked.Worker != 0 {
				as = w.Worker
			}
			if e.Run != nil {
				id = e.Run().ID
			}
			requests = append(requests, request{method, e.path(w.Owner.ProjectID, id), e.body(w, method, id), as})
		}
	}
	w.breakDown(t)
	for _, r := range requests {
		reply := c.Send(t, r.method, r.path, r.as, r.body)
		if r.method != "HEAD" {
			reply.Refused(t, 500, "internal")
		} else if reply.Status != 500 {
			t.Errorf("HEAD %s: %d", r.path, reply.Status)
		}
		for _, word := range inside {
			if strings.Contains(fmt.Sprint(reply.Header, reply.Body), word) {
				t.Errorf("%s %s: %q is told to the caller: %v %s", r.method, r.path, word, reply.Header, reply.Body)
			}
		}
	}
	for _, line := range log.Lines(t, len(requests)) {
		cause, _ := line["error"].(string)
		if line["level"] != "ERROR" || strings.Count(fmt.Sprint(line), "hunter2") != 1 || !strings.Contains(cause, "hunter2") {
			t.Errorf("the log does not tell the cause, once: %v", line)
		}
	}
	if strings.Contains(log.String(), w.Owner.Token) {
		t.Error("the log holds a token")
	}
}

// breakDown makes every look at a run, and every new line of a timeline, fail.
func (w *World) breakDown(t testing.TB) {
	t.Helper()
	for _, statement := range []string{
		`CREATE FUNCTION boom() RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '` + broken + `'; END $$`,
		`CREATE FUNCTION boom_on_write() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '` + broken + `'; END $$`,
		`ALTER TABLE wf2des RENAME TO wf2des_kept`, `CREATE VIEW wf2des AS SELECT * FROM wf2des_kept WHERE boom()`,
		`ALTER TABLE code2wf RENAME TO code2wf_kept`, `CREATE VIEW code2wf AS SELECT * FROM code2wf_kept WHERE boom()`,
		`CREATE TRIGGER boom BEFORE INSERT ON run_event FOR EACH STATEMENT EXECUTE FUNCTION boom_on_write()`,
	} {
		if _, err := w.SQL.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("servicetest: breaking the database: %v", err)
		}
	}
}
