package main

import (
	"encoding/json/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/resource"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/store/storetest"
	"framerun.dev/pkg/web"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// interaction is the service in a world of its own.
type interaction struct {
	*servicetest.World
	*servicetest.Client

	mu   sync.Mutex
	told []lifecycle.Ref
}

func open(t *testing.T) *interaction {
	t.Helper()
	in := &interaction{World: servicetest.New(t)}
	s := &server{store: in.Store, people: in.People, told: func(run lifecycle.Ref) {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.told = append(in.told, run)
	}}
	in.Client = in.Serve(t, s.routes())
	return in
}

// heard are the runs of which others were told.
func (in *interaction) heard() []lifecycle.Ref {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.told)
}

// decision is a person's request: what is sent, and what it comes to in the states that allow it.
type decision struct {
	name, method, path, body string
	what                     string // of the timeline
	data                     string // of the timeline
	from                     map[lifecycle.State]lifecycle.State
	kinds                    []lifecycle.Kind
	job                      string // of the outbox
}

var (
	onlyWF2Des = []lifecycle.Kind{lifecycle.WF2Des}
	stays      = func(states ...lifecycle.State) map[lifecycle.State]lifecycle.State {
		m := map[lifecycle.State]lifecycle.State{}
		for _, s := range states {
			m[s] = s
		}
		return m
	}
)

// decisions are all that a person can do, written down once more, and not read from the table that they are held against.
var decisions = []decision{
	{"confirm", "POST", "/confirm", `{"decision":"confirm","attempt":1}`, "confirmed", "{}",
		map[lifecycle.State]lifecycle.State{lifecycle.AwaitingConfirm: lifecycle.Assembling}, onlyWF2Des, "assemble"},
	{"reject", "POST", "/confirm", `{"decision":"reject","attempt":1}`, "rejected", "{}",
		map[lifecycle.State]lifecycle.State{lifecycle.AwaitingConfirm: lifecycle.Rejected}, onlyWF2Des, ""},
	{"cancel", "POST", "/cancel", ``, "cancelled", "{}",
		map[lifecycle.State]lifecycle.State{lifecycle.Parsing: lifecycle.Cancelled, lifecycle.AwaitingConfirm: lifecycle.Cancelled,
			lifecycle.Assembling: lifecycle.Cancelled}, onlyWF2Des, ""},
	{"place", "POST", "/placement", `{}`, "placed", "{}", stays(lifecycle.Completed), lifecycle.Kinds, ""},
	{"feedback", "POST", "/feedback", `{"feedbackStatus":"fixed"}`, "rated", `{"feedback_status": "fixed"}`, stays(lifecycle.Completed), onlyWF2Des, ""},
	{"delete", "DELETE", "", ``, "deleted", "{}",
		stays(lifecycle.Completed, lifecycle.Failed, lifecycle.Rejected, lifecycle.Cancelled), lifecycle.Kinds, ""},
}

// again are the states in which the decision has been made already: 200, and nothing changes.
var again = map[string]lifecycle.State{"confirm": lifecycle.Assembling, "reject": lifecycle.Rejected, "cancel": lifecycle.Cancelled}

// codes are the seed's digits.
var codes = map[lifecycle.State]struct {
	status string
	phase  any
}{
	lifecycle.Parsing: {"0", "0"}, lifecycle.AwaitingConfirm: {"0", "1"}, lifecycle.Assembling: {"0", "2"}, lifecycle.Processing: {"0", nil},
	lifecycle.Completed: {"1", nil}, lifecycle.Failed: {"2", nil}, lifecycle.Rejected: {"3", nil}, lifecycle.Cancelled: {"4", nil},
}

// Every decision in every state of both kinds.
func TestEveryDecisionInEveryState(t *testing.T) {
	t.Parallel()
	in := open(t)
	for _, kind := range lifecycle.Kinds {
		for _, state := range servicetest.StatesOf(kind) {
			for _, d := range decisions {
				t.Run(string(kind)+" "+string(state)+" "+d.name, func(t *testing.T) {
					run := in.In(t, kind, state)
					next, allowed := d.from[state]
					switch {
					case !slices.Contains(d.kinds, kind):
						in.noRoute(t, d, run)
					case allowed:
						in.applied(t, d, run, next)
					case again[d.name] == state:
						in.unchanged(t, d, run)
					default:
						in.conflict(t, d, run)
					}
				})
			}
		}
	}
}

// ask sends the decision as the colleague, who is not the one that made the run.
func (in *interaction) ask(t *testing.T, d decision, run lifecycle.Run) servicetest.Reply {
	t.Helper()
	return in.Send(t, d.method, servicetest.Path(run, run.ProjectID)+d.path, in.Colleague, d.body)
}

// applied checks a decision that is carried out: the reply, the row, the timeline, the outbox and the hint.
func (in *interaction) applied(t *testing.T, d decision, run lifecycle.Run, next lifecycle.State) {
	t.Helper()
	row, lines, letters := in.Row(t, run.Ref), in.Timeline(t, run.Ref), servicetest.Told(in.Outbox(t, run.Ref))
	reply := in.ask(t, d, run)
	if reply.Status != 200 {
		t.Fatalf("got %d %s; want 200", reply.Status, reply.Body)
	}
	after := in.Row(t, run.Ref)
	was := codes[next]
	row["status"], row["updated_at"], row["updated_by"] = was.status, after["updated_at"], in.Colleague.Subject
	if run.Kind == lifecycle.WF2Des {
		row["phase"] = was.phase
	}
	switch d.name {
	case "place":
		row["materialized_at"] = after["updated_at"]
	case "feedback":
		row["feedback_status"] = "0"
	case "delete":
		row["deleted_at"], row["deleted_by"] = after["updated_at"], in.Colleague.Subject
	}
	if diff := cmp.Diff(row, after); diff != "" {
		t.Errorf("the row (-want +got):\n%s", diff)
	}
	got, err := in.Store.RunOfAnyTenant(t.Context(), run.Ref)
	if err != nil || !got.UpdatedAt.After(run.UpdatedAt) {
		t.Errorf("updated_at went from %s to %s (%v)", run.UpdatedAt, got.UpdatedAt, err)
	}
	in.shows(t, reply, got)

	newest := in.Timeline(t, run.Ref)
	from := string(run.State)
	lines = append(lines, servicetest.Line{What: d.what, Outcome: "applied", By: "user", Actor: in.Colleague.Subject, From: &from, To: string(next),
		Attempt: 1, Data: d.data, Traceparent: newest[len(newest)-1].Traceparent})
	if diff := cmp.Diff(lines, newest); diff != "" || newest[len(newest)-1].Traceparent == nil {
		t.Errorf("the timeline (-want +got):\n%s", diff)
	}
	if d.job != "" {
		letters = append(letters, "jobs "+d.job)
	}
	letters = append(letters, "events "+string(rune('0'+len(lines))))
	if diff := cmp.Diff(letters, servicetest.Told(in.Outbox(t, run.Ref))); diff != "" {
		t.Errorf("the outbox (-want +got):\n%s", diff)
	}
	if heard := in.heard(); len(heard) == 0 || heard[len(heard)-1] != run.Ref {
		t.Errorf("nobody was told: %v", heard)
	}
}

// shows checks that a reply is the run as it stands.
func (in *interaction) shows(t *testing.T, reply servicetest.Reply, run lifecycle.Run) {
	t.Helper()
	want, err := json.Marshal(resource.Of(run, nil), json.Deterministic(true))
	if err != nil || reply.Body != string(want) {
		t.Errorf("the reply says\n%s\nthe row says\n%s", reply.Body, want)
	}
	if got := reply.Header.Get("ETag"); got != web.ETag(run.ID, run.UpdatedAt) {
		t.Errorf("ETag is %s", got)
	}
	if got := reply.Header.Get("Retry-After"); (got != "") == run.Ended() {
		t.Errorf("Retry-After is %q for a run that is %s", got, run.State)
	}
}

// still checks that ask changes nothing and tells nobody.
func (in *interaction) still(t *testing.T, ask func() servicetest.Reply) servicetest.Reply {
	t.Helper()
	before, heard := in.Content(t), len(in.heard())
	reply := ask()
	if diff := cmp.Diff(before, in.Content(t)); diff != "" {
		t.Errorf("something changed: %s", diff)
	}
	if len(in.heard()) != heard {
		t.Error("others were told of it")
	}
	return reply
}

// unchanged checks the same decision made again.
func (in *interaction) unchanged(t *testing.T, d decision, run lifecycle.Run) {
	t.Helper()
	reply := in.still(t, func() servicetest.Reply { return in.ask(t, d, run) })
	if reply.Status != 200 {
		t.Fatalf("got %d %s; want 200", reply.Status, reply.Body)
	}
	in.shows(t, reply, run)
}

// conflict checks a decision that the state does not allow: the problem tells how the run stands.
func (in *interaction) conflict(t *testing.T, d decision, run lifecycle.Run) {
	t.Helper()
	problem := in.still(t, func() servicetest.Reply { return in.ask(t, d, run) }).Refused(t, 409, "state_conflict")
	in.tells(t, problem, run)
	if detail, _ := problem["detail"].(string); !strings.Contains(detail, string(run.State)) {
		t.Errorf("the detail does not name the state: %q", detail)
	}
}

// tells checks a 409's members about the run.
func (in *interaction) tells(t *testing.T, problem map[string]any, run lifecycle.Run) {
	t.Helper()
	actions := []any{}
	for _, verb := range run.NextActions() {
		actions = append(actions, string(verb))
	}
	var phase any
	if p := run.State.Phase(); p != "" {
		phase = string(p)
	}
	want := map[string]any{"runStatus": string(run.State.Status()), "phase": phase, "attempt": float64(run.Attempt), "nextActions": actions,
		"createdAt": web.Timestamp(run.CreatedAt)}
	for name, value := range want {
		if got, there := problem[name]; !there || !cmp.Equal(got, value) {
			t.Errorf("%s is %v; want %v", name, got, value)
		}
	}
}

// noRoute checks that a route does not exist for the kind.
func (in *interaction) noRoute(t *testing.T, d decision, run lifecycle.Run) {
	t.Helper()
	in.still(t, func() servicetest.Reply { return in.ask(t, d, run) }).Refused(t, 404, "not_found")
}
