package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
)

// doomed names the variable that makes this test binary the service itself, which its parent stops at a crash point.
const doomed = "FRAMERUN_STATUS_DOOMED"

// points are where the service is stopped on a design's way to the registry: a statement that waits there for the test.
var points = map[string]struct{ when, on, of string }{
	"before the commit":                    {"INSERT", "outbox", "NEW.destination = 'designs'"},
	"after the commit, before the landing": {"INSERT", "design", "true"},
	"after the landing, before forgetting": {"DELETE", "outbox", "OLD.destination = 'designs'"},
}

// Catches a design that is lost or doubled, and a row that is not as it was acknowledged, when the service is killed or frozen anywhere
// between the completion and the end of its effect.
func TestServiceStopsOnTheWayToTheRegistry(t *testing.T) {
	if os.Getenv(doomed) != "" {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute) // a parent that is gone takes it along
		defer stop()
		t.Fatal(run(ctx, os.LookupEnv, io.Discard))
	}
	t.Parallel()
	for point := range points {
		for how, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "frozen": syscall.SIGSTOP} {
			t.Run(how+" "+point, func(t *testing.T) {
				t.Parallel()
				c := begin(t)
				run := c.In(t, lifecycle.WF2Des, lifecycle.Assembling)
				c.stopAt(t, point)
				c.complete(t, run)
				c.reached(t)
				if err := c.child.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
				c.goOn(t)
				next := c.Start(t, service, c.environment(t))
				if point == "before the commit" { // nobody was told that it is stored, so the worker tells again
					c.post(t, next.URL, run)
				}
				c.mustLand(t, run)
				if signal == syscall.SIGSTOP {
					c.child.Process.Signal(syscall.SIGCONT)
					c.mustLand(t, run)
				}
			})
		}
	}
}

// service is run under another name, which the tests above hide.
var service servicetest.Main = run

// crash is a service in a process of its own, on its way to a crash point.
type crash struct {
	*servicetest.World
	secret string
	worker *auth.Webhooks
	child  *exec.Cmd
	url    string
}

func begin(t *testing.T) *crash {
	t.Helper()
	c := &crash{World: servicetest.New(t), secret: secret()}
	c.worker = webhooks(t, c.secret)
	env := c.environment(t)
	c.child = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServiceStopsOnTheWayToTheRegistry$")
	c.child.Env = append(os.Environ(), doomed+"=1")
	for name, value := range env {
		c.child.Env = append(c.child.Env, name+"="+value)
	}
	if err := c.child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.child.Process.Kill()
		c.child.Wait()
	})
	c.url = "http://" + env["LISTEN"]
	servicetest.Eventually(t, "the service is ready", func() bool {
		response, err := http.Get("http://" + env["OPS_LISTEN"] + "/readyz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return c
}

func (c *crash) environment(t *testing.T) map[string]string {
	t.Helper()
	return c.Environment(t, map[string]string{"WEBHOOK_SECRETS": c.secret, "DESIGN_REGISTRY_URL": c.URL})
}

// stopAt makes the statement of the crash point wait until goOn.
func (c *crash) stopAt(t *testing.T, name string) {
	t.Helper()
	p := points[name]
	c.SQL.MustExec(`CREATE FUNCTION crash_point() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		PERFORM pg_sleep(3600); RETURN coalesce(NEW, OLD); END $$`)
	c.SQL.MustExec(fmt.Sprintf(`CREATE TRIGGER crash_point BEFORE %s ON %s FOR EACH ROW WHEN (%s) EXECUTE FUNCTION crash_point()`, p.when, p.on, p.of))
}

const waiting = `FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`

func (c *crash) reached(t *testing.T) {
	t.Helper()
	servicetest.Eventually(t, "the crash point is reached", func() bool {
		var n int
		if err := c.SQL.Get(&n, `SELECT count(*) `+waiting); err != nil {
			t.Fatal(err)
		}
		return n > 0
	})
}

// goOn ends the sessions that wait at the crash point, which is none any more.
func (c *crash) goOn(t *testing.T) {
	t.Helper()
	servicetest.Eventually(t, "the sessions at the crash point have ended", func() bool {
		c.SQL.MustExec(`SELECT pg_terminate_backend(pid) ` + waiting)
		var n int
		if err := c.SQL.Get(&n, `SELECT count(*) `+waiting); err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
	c.SQL.MustExec(`DROP FUNCTION crash_point CASCADE`)
}

// complete sends the worker's last word without waiting for the answer.
func (c *crash) complete(t *testing.T, run lifecycle.Run) {
	t.Helper()
	r := c.request(t, c.url, run)
	go func() {
		if response, err := http.DefaultClient.Do(r); err == nil {
			response.Body.Close()
		}
	}()
}

func (c *crash) post(t *testing.T, url string, run lifecycle.Run) {
	t.Helper()
	response, err := http.DefaultClient.Do(c.request(t, url, run))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the worker is told %s", response.Status)
	}
}

func (c *crash) request(t *testing.T, url string, run lifecycle.Run) *http.Request {
	t.Helper()
	body := []byte(whole(run, completed))
	r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/ai-status", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	maps.Copy(r.Header, c.worker.Sign("msg_1", time.Now(), body))
	return r
}

// mustLand waits until nothing is on its way any more: then the run is completed once, and its design is there once.
func (c *crash) mustLand(t *testing.T, run lifecycle.Run) {
	t.Helper()
	count := func(query string) (n int) {
		if err := c.SQL.GetContext(t.Context(), &n, query, run.ID); err != nil {
			t.Fatal(err)
		}
		return n
	}
	servicetest.Eventually(t, "the design has landed and its entry is forgotten", func() bool {
		return count(`SELECT count(*) FROM design WHERE wf2des_id = $1`) == 1 &&
			count(`SELECT count(*) FROM outbox WHERE run_id = $1 AND destination = 'designs'`) == 0
	})
	if n := count(`SELECT count(*) FROM run_event WHERE run_id = $1 AND what = 'completed' AND outcome = 'applied'`); n != 1 {
		t.Errorf("it was completed %d times", n)
	}
	if row := c.Row(t, run.Ref); row["status"] != "1" {
		t.Errorf("the row is %v", row["status"])
	}
}
