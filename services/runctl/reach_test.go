package main

import (
	"encoding/json/v2"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"framerun.dev/pkg/events"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
)

// withNATS starts a real nats-server with JetStream and returns a connection to it.
func (d *desk) withNATS(t *testing.T) *nats.Conn {
	t.Helper()
	at, err := netip.ParseAddrPort(servicetest.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: int(at.Port()), JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("nats-server was not ready in time")
	}
	d.nats = s.ClientURL()
	conn, err := nats.Connect(d.nats)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// After a change the services are told to look at once. Catches a change of which nobody hears, and a dry run or a refusal that is told.
func TestChangesAreHinted(t *testing.T) {
	t.Parallel()
	d := deskOf(t)
	conn := d.withNATS(t)
	hints := make(chan *nats.Msg, 100)
	if _, err := conn.ChanSubscribe("framerun.>", hints); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	run := d.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	job := d.entries(t, run)[0]
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"runs", "requeue", run.ID, "--dry-run"}, nil},
		{[]string{"runs", "requeue", run.ID}, []string{events.OutboxWake, events.Changed(run.Ref)}},
		{[]string{"outbox", "skip", job}, []string{events.OutboxWake, events.Changed(run.Ref)}},
		{[]string{"runs", "cancel", run.ID}, []string{events.OutboxWake, events.Changed(run.Ref)}},
		{[]string{"runs", "cancel", run.ID}, nil}, // it is so already
		{[]string{"runs", "requeue", run.ID}, nil},
	} {
		got := d.as(t, c.args...)
		if strings.Contains(got.err, "not hinted") {
			t.Errorf("%v: %s", c.args, got.err)
		}
		if err := conn.Publish("framerun.end", nil); err != nil {
			t.Fatal(err)
		}
		var heard []string
		for m := range hints {
			if m.Subject == "framerun.end" {
				break
			}
			heard = append(heard, m.Subject)
		}
		slices.Sort(heard)
		if diff := cmp.Diff(c.want, heard); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.args, diff)
		}
	}
}

// Catches a change that fails, or is told to have failed, because NATS is down or not named.
func TestWithoutNATSAChangeStands(t *testing.T) {
	t.Parallel()
	d := deskOf(t)
	for _, args := range [][]string{{"--nats-url", d.nats}, {}} {
		run := d.In(t, lifecycle.WF2Des, lifecycle.Parsing)
		got := ctl(t, "", append([]string{"runs", "cancel", run.ID, "--operator", operator, "--database-url", d.URL}, args...)...).want(t, exitDone)
		if d.Row(t, run.Ref)["status"] != "4" || !strings.Contains(got.err, "stored, but not hinted") {
			t.Errorf("%v: %s", d.Row(t, run.Ref)["status"], got.err)
		}
	}
}

// Catches a feed that is read in part, that is not CloudEvents, and a missing or unreachable feed that looks like an empty one.
func TestEventsTail(t *testing.T) {
	t.Parallel()
	d := deskOf(t)
	d.ctl(t, "events", "tail").want(t, exitUnavailable)
	d.withNATS(t)
	d.ctl(t, "events", "tail").want(t, exitNotFound)
	bus, err := events.Connect(d.nats, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	feed, err := bus.Feed()
	if err != nil {
		t.Fatal(err)
	}
	run, other := d.In(t, lifecycle.WF2Des, lifecycle.Cancelled), d.In(t, lifecycle.Code2WF, lifecycle.Processing)
	carry(t, d, feed)
	lines := strings.Split(strings.TrimSpace(d.ctl(t, "events", "tail", "--run", run.ID, "-o", "json").want(t, exitDone).out), "\n")
	var ids []string
	for _, line := range lines {
		var e events.CloudEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	if want := []string{run.ID + "/1", run.ID + "/2"}; !slices.Equal(ids, want) {
		t.Errorf("heard %v, want %v", ids, want)
	}
	if got := d.ctl(t, "events", "tail", "--kind", "code2wf", "--since", "0").want(t, exitDone).out; !strings.Contains(got, other.ID) || strings.Contains(got, run.ID) {
		t.Errorf("of one kind: %s", got)
	}
}

// carry lets the feed have all events, as the relay does.
func carry(t *testing.T, d *desk, feed *events.Feed) {
	t.Helper()
	for {
		parcels, err := d.Store.ClaimEvents(t.Context(), 100, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if len(parcels) == 0 {
			return
		}
		for _, p := range parcels {
			if err := feed.Send(t.Context(), []lifecycle.Announcement{p.Load})[0]; err != nil {
				t.Fatal(err)
			}
			if err := d.Store.Sent(t.Context(), []int64{p.ID}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Catches a script that cannot tell "try again" from "never", and a command line that is carried out on half of two suites.
func TestWhereThingsAre(t *testing.T) {
	t.Parallel()
	d := deskOf(t)
	run := d.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	nowhere := "postgres://x@" + servicetest.FreeAddress(t) + "/x?sslmode=disable"
	ctl(t, "", "runs", "list", "--database-url", nowhere).want(t, exitUnavailable)
	ctl(t, "", "runs", "list", "--database-url", "mysql://x").want(t, exitUsage)
	ctl(t, "", "runs", "list", "--nats-url", d.nats).want(t, exitUsage) // no half of another suite
	ctl(t, "", "queue", "tail", "--queue-urls", "wf2des=http://127.0.0.1:1/q", "lost").want(t, exitUsage)

	file := filepath.Join(t.TempDir(), "stack.json")
	write := func(v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctl(t, "", "runs", "list", "--stack", file).want(t, exitUsage)
	write([]int{1})
	ctl(t, "", "runs", "list", "--stack", file).want(t, exitUsage)
	write(map[string]any{"postgres": d.URL, "nats": d.nats, "tokens": map[string]string{"plugin": d.Owner.Token}, "somethingNew": 1})
	if got := ctl(t, "", "runs", "list", "--stack", file).want(t, exitDone); !strings.Contains(got.out, run.ID) {
		t.Errorf("by the stack's file: %s", got.out)
	}
	if got := ctl(t, "", "token", "show", "--stack", file).want(t, exitDone); strings.TrimSpace(got.out) != d.Owner.Token {
		t.Errorf("the token is %s", got.out)
	}
	ctl(t, "", "runs", "list", "--stack", file, "--database-url", nowhere).want(t, exitUnavailable) // a flag goes before the file
	ctl(t, "", "token", "show", "api", "--stack", file).want(t, exitUsage)
}

// The members that scripts read. Catches one that is renamed or lost.
func TestMembersOfJSON(t *testing.T) {
	t.Parallel()
	d := deskOf(t)
	run := d.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	d.SQL.MustExec(`UPDATE outbox SET last_error = 'x'`)
	members := func(v any) string { return strings.Join(slices.Sorted(maps.Keys(v.(map[string]any))), " ") }
	first := func(got told, name string) map[string]any { return got.json(t)[name].([]any)[0].(map[string]any) }
	const runMembers = "attempt autoConfirm createdAt createdBy deletedAt edge errorMessage figmaFileKey id kind organizationId phase projectId resultUrl " +
		"screenId state status updatedAt updatedBy wfNodeId"
	shown := d.ctl(t, "runs", "show", run.ID, "-o", "json")
	stuck := first(d.ctl(t, "runs", "stuck", "--older-than", "0s", "-o", "json"), "items")
	entry := first(d.ctl(t, "outbox", "list", "-o", "json"), "items")
	for _, c := range []struct {
		v    any
		want string
	}{
		{first(d.ctl(t, "runs", "list", "-o", "json"), "items"), runMembers},
		{shown.json(t), "heardAt outbox run says timeline try waitsFor"},
		{first(shown, "timeline"), "actor at attempt by outcome seq to what"},
		{stuck, "idleSeconds last outbox run says try waitsFor"},
		{stuck["run"], runMembers},
		{entry, "attempt createdAt destination dueAt id kind lastError runId settledAt stage state tries"},
		{d.ctl(t, "runs", "cancel", run.ID, "--dry-run", "-o", "json").json(t), "dryRun from outcome run verb"},
		{d.ctl(t, "runs", "requeue", run.ID, "--dry-run", "-o", "json").json(t), "dryRun from job outcome run verb"},
		{d.ctl(t, "outbox", "skip", d.entries(t, run)[0], "--dry-run", "-o", "json").json(t), "dryRun entry intervention runState"},
	} {
		if got := members(c.v); got != c.want {
			t.Errorf("members are %s\nwant        %s", got, c.want)
		}
	}
}
