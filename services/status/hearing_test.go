package main

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json/v2"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/events"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/store/storetest"
	"framerun.dev/pkg/web"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// ear is the service on a world of its own, with a worker that knows its secret.
type ear struct {
	*servicetest.World
	*servicetest.Client
	server *server
	worker *auth.Webhooks
	nerve  *heard
}

// heard is the end of the nerve where query would listen.
type heard struct {
	mu       sync.Mutex
	told     []lifecycle.Ref
	progress []report
}

type report struct {
	Run lifecycle.Ref
	P   events.Progress
}

func (h *heard) TellChanged(run lifecycle.Ref) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = append(h.told, run)
}

func (h *heard) TellProgress(run lifecycle.Ref, p events.Progress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progress = append(h.progress, report{run, p})
}

// take is everything that was told since the last take.
func (h *heard) take() (told []lifecycle.Ref, progress []report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	told, progress, h.told, h.progress = h.told, h.progress, nil, nil
	return told, progress
}

func secret() string {
	raw := make([]byte, 32)
	rand.Read(raw)
	return "whsec_" + base64.StdEncoding.EncodeToString(raw)
}

func webhooks(t *testing.T, secrets ...string) *auth.Webhooks {
	t.Helper()
	w, err := auth.NewWebhooks(secrets, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func listen(t *testing.T) *ear {
	t.Helper()
	return listenOn(t, servicetest.New(t), web.Options{NoCORS: true}, secret())
}

// listenOn knows the secrets; its worker signs with the first.
func listenOn(t *testing.T, w *servicetest.World, o web.Options, secrets ...string) *ear {
	t.Helper()
	e := &ear{World: w, worker: webhooks(t, secrets...), nerve: &heard{}}
	e.server = &server{
		store: w.Store, webhooks: webhooks(t, secrets...), nerve: e.nerve,
		account: lifecycle.Actor{Voice: lifecycle.Backend, Name: platform.UserWorker},
	}
	e.Client = w.ServeWith(t, e.server.routes(), o)
	return e
}

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	caller  = "00-" + traceID + "-00f067aa0ba902b7-01"
)

// say sends a signed body.
func (e *ear) say(t *testing.T, body string) servicetest.Reply {
	t.Helper()
	reply, err := e.Try(e.signed(t, body))
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func (e *ear) signed(t *testing.T, body string) *http.Request {
	t.Helper()
	r := e.Request(t, "POST", "/v1/ai-status", servicetest.Principal{}, body, "traceparent", caller)
	maps.Copy(r.Header, e.worker.Sign("msg_1", time.Now(), []byte(body)))
	return r
}

// members are a body's, by name; nil takes one away.
type members map[string]any

// about is what every word about run holds, with more members on top.
func about(run lifecycle.Run, what event, more members) string {
	m := members{"attempt": run.Attempt, "event": what, idMember(run.Kind): run.ID}
	maps.Copy(m, more)
	maps.DeleteFunc(m, func(_ string, v any) bool { return v == nil })
	raw, err := json.Marshal(m, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func idMember(kind lifecycle.Kind) string {
	if kind == lifecycle.Code2WF {
		return "code2wf_id"
	}
	return "job_id"
}

// key is where run's result may lie.
func key(run lifecycle.Run) string { return fmt.Sprintf("%s/%s/1/spec.json", run.Kind, run.ID) }

// whole is a word of each event with everything that it needs.
func whole(run lifecycle.Run, what event) string {
	switch what {
	case completed:
		return about(run, what, members{"result_url": key(run), "flag_count": 3, "score": 0.9031, "score_version": "ds@2.0"})
	case failed:
		return about(run, what, members{"manifest": members{"error_code": "source_empty", "error_message": "nothing there"}})
	case progress:
		return about(run, what, members{"progress": members{"percent": 40, "message": "Reading the frame"}})
	}
	return about(run, what, nil)
}

// mustTell fails unless the worker is told outcome, and nothing else.
func mustTell(t *testing.T, about string, reply servicetest.Reply, want map[string]any) {
	t.Helper()
	if reply.Status != http.StatusOK {
		t.Errorf("%s: got %d %s", about, reply.Status, reply.Body)
		return
	}
	if diff := cmp.Diff(want, reply.JSON(t)); diff != "" {
		t.Errorf("%s: the worker is told (-want +got):\n%s", about, diff)
	}
}

// answered is the JSON of an answer for a run in state.
func answered(outcome string, state lifecycle.State, attempt int, goOn bool) map[string]any {
	a := map[string]any{"outcome": outcome, "status": string(state.Status()), "phase": nil, "attempt": float64(attempt), "continue": goOn}
	if phase := state.Phase(); phase != "" {
		a["phase"] = string(phase)
	}
	return a
}

// unchanged fails if do changes anything that is stored, or tells anybody of a change.
func (e *ear) unchanged(t *testing.T, about string, do func()) {
	t.Helper()
	e.nerve.take()
	before := e.Content(t)
	do()
	if diff := cmp.Diff(before, e.Content(t)); diff != "" {
		t.Errorf("%s changed what is stored:\n%s", about, diff)
	}
	if told, _ := e.nerve.take(); len(told) > 0 {
		t.Errorf("%s told of changes of %v", about, told)
	}
}
