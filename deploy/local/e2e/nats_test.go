package e2e

import (
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// natsDown takes NATS away for the whole life of a run: everything goes on, only slower, and the public feed gets all of it afterwards.
func natsDown(t *testing.T, s *suite) {
	bringBack := s.stopNATS(t)
	r := s.create(t)
	eventually(t, 3*time.Second, "the job leaves without a hint", func() bool { return s.jobs(r, "parse") == 1 })
	s.answeredByItsOwnLook(t, r)
	for _, service := range []string{"intake", "status", "interaction", "query"} {
		if !s.ready(service) {
			t.Errorf("%s is not ready without NATS", service)
		}
	}
	s.confirm(t, r)
	eventually(t, 3*time.Second, "the second job leaves without a hint", func() bool { return s.jobs(r, "assemble") == 1 })
	s.tell(t, r, "completed", r.result())
	eventually(t, 3*time.Second, "the end is seen without a hint", func() bool { return s.state(t, r) == "completed" })

	bringBack()
	s.checkFeed(t, r, []string{"created", "parsed", "confirmed", "completed"})
	again := s.create(t)
	s.checkFeed(t, again, s.whole(t, again))
}

// answeredByItsOwnLook lets a GET wait for a change of which nobody tells the query service.
func (s *suite) answeredByItsOwnLook(t *testing.T, r run) {
	t.Helper()
	answer := make(chan reply, 1)
	go func() {
		got, err := s.try("GET", r.self, nil, "Prefer", "wait=25", "If-None-Match", r.etag)
		if err != nil {
			t.Error(err)
		}
		answer <- got
	}()
	eventually(t, 5*time.Second, "the GET waits", func() bool { return s.inFlight(t, "query") })
	s.tell(t, r, "parsed", nil)
	began := time.Now()
	got := <-answer
	if got.status != 200 || stateOf(got) != "awaiting_confirm" || got.header.Get("Preference-Applied") != "wait=25" {
		t.Errorf("the waiting GET says %d %s", got.status, got.raw)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the waiting GET saw the change %s late", took)
	}
}

// stopNATS takes NATS away until it is brought back, at the latest when the test ends.
func (s *suite) stopNATS(t *testing.T) (bringBack func()) {
	t.Helper()
	folder := filepath.Dir(s.NATS.StoreDir())
	s.NATS.Shutdown()
	s.NATS.WaitForShutdown()
	bringBack = sync.OnceFunc(func() { s.startNATS(t, folder) })
	t.Cleanup(bringBack)
	return bringBack
}

// startNATS brings NATS back where it was, with what it had stored.
func (s *suite) startNATS(t *testing.T, folder string) {
	t.Helper()
	u, err := url.Parse(s.at.NATS)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	server, err := natsserver.NewServer(&natsserver.Options{ServerName: "framerun-local", Host: "127.0.0.1", Port: port,
		JetStream: true, StoreDir: folder, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	server.Start()
	if !server.ReadyForConnections(10 * time.Second) {
		t.Fatal("nats-server does not come back")
	}
	s.NATS = server
}
