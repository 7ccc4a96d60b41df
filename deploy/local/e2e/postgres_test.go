package e2e

import (
	"net/url"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"framerun.dev/deploy/local/stack"
	"framerun.dev/pkg/localpg"
)

// TestPostgresRestart takes PostgreSQL away under load and brings it back: 503 with Retry-After meanwhile, never 500, nothing that was
// answered with 201 is lost, and it works again at once.
func TestPostgresRestart(t *testing.T) {
	t.Parallel()
	server, config := startPostgres(t)
	s := start(t, stack.Config{Worker: "none", DatabaseURL: server.URL("postgres")})
	load := s.load()
	t.Cleanup(load.end)

	eventually(t, 5*time.Second, "the load works", func() bool { return load.count("POST", 201) > 3 && load.count("GET", 200) > 3 })
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "requests are turned away", func() bool { return load.count("POST", 503) > 3 && load.count("GET", 503) > 3 })
	eventually(t, 5*time.Second, "no service is ready", func() bool { return !s.ready("intake") && !s.ready("query") })
	before := load.count("POST", 201)
	server, err := localpg.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	eventually(t, 2*time.Second, "a run can be created again", func() bool { return load.count("POST", 201) > before })

	load.end()
	for _, problem := range load.problems {
		t.Error(problem)
	}
	for _, r := range load.runs {
		s.ask(t, "GET", r.self, nil).want(t, 200)
	}
	for _, r := range load.runs {
		eventually(t, 10*time.Second, "every job leaves", func() bool { return s.jobs(r, "parse") > 0 })
	}
}

// startPostgres runs a server that can be stopped and started on its data.
func startPostgres(t *testing.T) (*localpg.Server, localpg.Config) {
	t.Helper()
	dir, err := os.MkdirTemp(scratch(), "postgres-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // as root, the server runs as another user
		t.Fatal(err)
	}
	config := localpg.Config{Dir: dir}
	server, err := localpg.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	u, err := url.Parse(server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if config.Port, err = strconv.Atoi(u.Port()); err != nil {
		t.Fatal(err)
	}
	return server, config
}

// load asks without a pause and takes down what was answered.
type load struct {
	suite *suite
	stop  chan struct{}
	end   func() // ends the asking and waits for the last answers
	asked sync.WaitGroup

	mu       sync.Mutex
	counts   map[string]int
	runs     []run // those that were answered with 201
	problems []string
}

// load begins with two plugins that create runs and two that look at the list.
func (s *suite) load() *load {
	l := &load{suite: s, stop: make(chan struct{}), counts: map[string]int{}}
	for range 2 {
		l.asked.Go(func() { l.repeat("POST", collection, 201) })
		l.asked.Go(func() { l.repeat("GET", collection+"?limit=5", 200) })
	}
	l.end = sync.OnceFunc(func() {
		close(l.stop)
		l.asked.Wait()
	})
	return l
}

func (l *load) repeat(method, target string, good int) {
	for {
		select {
		case <-l.stop:
			return
		case <-time.After(20 * time.Millisecond):
			l.one(method, target, good)
		}
	}
}

func (l *load) one(method, target string, good int) {
	var body any
	if method == "POST" {
		body = draft()
	}
	began := time.Now()
	r, err := l.suite.try(method, target, body)
	took := time.Since(began)

	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		l.problems = append(l.problems, err.Error())
		return
	case r.status == 503 && r.header.Get("Retry-After") == "":
		l.problems = append(l.problems, method+": 503 without Retry-After: "+r.raw)
	case r.status != good && r.status != 503:
		l.problems = append(l.problems, method+": "+strconv.Itoa(r.status)+": "+r.raw)
	case took > 6*time.Second:
		l.problems = append(l.problems, method+": an answer after "+took.String())
	case r.status == 201:
		l.runs = append(l.runs, created(r))
	}
	l.counts[method+strconv.Itoa(r.status)]++
}

func (l *load) count(method string, status int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[method+strconv.Itoa(status)]
}
