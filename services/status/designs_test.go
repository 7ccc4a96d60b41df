package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
)

// running is the real service with its registry at address; "" switches it off.
func running(t *testing.T, w *servicetest.World, registry string) (*ear, *servicetest.Running) {
	t.Helper()
	known := secret()
	s := w.Start(t, run, w.Environment(t, map[string]string{"WEBHOOK_SECRETS": known, "DESIGN_REGISTRY_URL": registry}))
	return &ear{World: w, Client: s.Client, worker: webhooks(t, known)}, s
}

// designs counts what the registry holds of a run.
func (e *ear) designs(t *testing.T, run lifecycle.Run) (n int) {
	t.Helper()
	if err := e.SQL.GetContext(t.Context(), &n, `SELECT count(*) FROM design WHERE wf2des_id = $1 AND result_url = $2 AND type = '0'`, run.ID, key(run)); err != nil {
		t.Fatal(err)
	}
	return n
}

func (e *ear) pending(t *testing.T, destination string) (n int) {
	t.Helper()
	if err := e.SQL.GetContext(t.Context(), &n, `SELECT count(*) FROM outbox WHERE destination = $1`, destination); err != nil {
		t.Fatal(err)
	}
	return n
}

func readyz(t *testing.T, s *servicetest.Running) string {
	t.Helper()
	response, err := http.Get(s.Ops + "/readyz?verbose")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("readyz: %s, %v", response.Status, err)
	}
	return string(raw)
}

// Catches a design that does not land, or lands without being one: of the other edge, of a page's code, of a run that failed.
func TestOnlyCompletedDesignsLand(t *testing.T) {
	t.Parallel()
	w := servicetest.New(t)
	e, _ := running(t, w, w.URL)
	to := func(edge lifecycle.Edge) func(*lifecycle.Run) { return func(r *lifecycle.Run) { r.Edge = edge } }
	design := e.In(t, lifecycle.WF2Des, lifecycle.Assembling, to(lifecycle.EdgeWF2Des))
	others := []lifecycle.Run{
		e.In(t, lifecycle.WF2Des, lifecycle.Assembling, to(lifecycle.EdgeDes2WF)), e.In(t, lifecycle.Code2WF, lifecycle.Processing),
	}
	broken := e.In(t, lifecycle.WF2Des, lifecycle.Assembling)
	for _, run := range append(others, design) {
		for range 2 { // the worker's word comes twice
			e.say(t, whole(run, completed))
		}
	}
	e.say(t, whole(broken, failed))
	servicetest.Eventually(t, "the design lands", func() bool { return e.designs(t, design) == 1 })
	servicetest.Eventually(t, "nothing is on its way any more", func() bool { return e.pending(t, "designs") == 0 })
	var all int
	if err := w.SQL.Get(&all, `SELECT count(*) FROM design`); err != nil || all != 1 {
		t.Errorf("the registry holds %d designs (%v), want 1", all, err)
	}
}

// Catches a registry that is away and holds up the row or the service, and a design that is forgotten meanwhile.
func TestRegistryIsAway(t *testing.T) {
	t.Parallel()
	w := servicetest.New(t)
	w.SQL.MustExec(`ALTER TABLE design RENAME TO away`)
	e, s := running(t, w, w.URL)
	run := e.In(t, lifecycle.WF2Des, lifecycle.Assembling)
	mustTell(t, "while the registry is away", e.say(t, whole(run, completed)), answered("applied", lifecycle.Completed, 1, false))
	servicetest.Eventually(t, "the cause is kept for the operator", func() bool {
		var cause string
		err := w.SQL.Get(&cause, `SELECT coalesce(max(last_error), '') FROM outbox WHERE destination = 'designs' AND state = 'pending'`)
		return err == nil && strings.Contains(cause, "design")
	})
	readyz(t, s)
	w.SQL.MustExec(`ALTER TABLE away RENAME TO design`)
	servicetest.Eventually(t, "the design lands after all", func() bool { return e.designs(t, run) == 1 && e.pending(t, "designs") == 0 })
}

// Catches a service that is not ready because of what it can do without, and one that says nothing of it.
func TestReadyWithoutTheOutside(t *testing.T) {
	t.Parallel()
	w := servicetest.New(t)
	_, s := running(t, w, "postgres://nobody@"+servicetest.FreeAddress(t)+"/none?sslmode=disable")
	if said := readyz(t, s); !strings.Contains(said, `"name":"design_registry","ok":false`) || !strings.Contains(said, `"name":"documentdb","ok":true,"critical":false,"off":true`) {
		t.Errorf("readyz says %s", said)
	}
}

// Catches an effect that is written although nobody would carry it.
func TestRegistryIsOff(t *testing.T) {
	t.Parallel()
	e, s := running(t, servicetest.New(t), "")
	e.say(t, whole(e.In(t, lifecycle.WF2Des, lifecycle.Assembling), completed))
	if n := e.pending(t, "designs"); n != 0 {
		t.Errorf("%d effects are written", n)
	}
	if said := readyz(t, s); !strings.Contains(said, `"name":"design_registry","ok":true,"critical":false,"off":true`) {
		t.Errorf("readyz says %s", said)
	}
}
