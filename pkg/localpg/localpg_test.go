package localpg

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/lib/pq" // the driver "postgres"
)

func TestDataStaysFromStartToStart(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	if err := os.Mkdir(filepath.Join(dir, "data.making"), 0o700); err != nil { // an earlier start was killed while making it
		t.Fatal(err)
	}
	first := begin(t, Config{Dir: dir})
	ask(t, first, `CREATE TABLE kept (n integer)`)
	ask(t, first, `INSERT INTO kept VALUES (42)`)
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	second := begin(t, Config{Dir: dir, Durable: true})
	if got := ask(t, second, `SELECT n FROM kept`); got != "42" {
		t.Errorf("kept %q, want 42", got)
	}
}

func TestThrowawayLeavesNothing(t *testing.T) {
	t.Parallel()
	s := begin(t, Config{})
	data := ask(t, s, `SHOW data_directory`)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	default:
		t.Error("Stop came back before the server was gone")
	}
	if _, err := os.Stat(filepath.Dir(data)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", filepath.Dir(data), err)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	quick := begin(t, Config{Settings: map[string]string{"work_mem": "5MB", "port": "1", "listen_addresses": "*"}})
	durable := begin(t, Config{Durable: true, Port: port})
	for _, c := range []struct {
		server  *Server
		setting string
		want    string
	}{
		{quick, "work_mem", "5MB"},
		{quick, "fsync", "off"},
		{quick, "full_page_writes", "off"},
		{quick, "listen_addresses", "127.0.0.1"},
		{quick, "port", strconv.Itoa(quick.port)},
		{quick, "server_encoding", "UTF8"},
		{quick, "timezone", "UTC"},
		{durable, "fsync", "on"},
		{durable, "synchronous_commit", "on"},
		{durable, "full_page_writes", "on"},
		{durable, "port", strconv.Itoa(port)},
	} {
		if got := ask(t, c.server, `SHOW `+c.setting); got != c.want {
			t.Errorf("%s: %q, want %q", c.setting, got, c.want)
		}
	}
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	begin(t, Config{Dir: dir})
	port := listen(t)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		cfg  Config
		want string
	}{
		{"port in use", t.Context(), Config{Port: port}, "port " + strconv.Itoa(port) + " on 127.0.0.1 is taken"},
		{"folder in use", t.Context(), Config{Dir: dir}, "another process runs a PostgreSQL on " + dir},
		{"bad setting", t.Context(), Config{Settings: map[string]string{"work_mem": "plenty"}}, `invalid value for parameter "work_mem": "plenty"`},
		{"given up", canceled, Config{}, "context canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Start(c.ctx, c.cfg)
			if err == nil {
				s.Stop()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v; want one with %q", err, c.want)
			}
		})
	}
}

// A machine that went down, or a container started again, leaves a pid file whose number may belong to anybody by now.
func TestStalePidFileDoesNotHinder(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	s := begin(t, Config{Dir: dir})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	pids := map[string]int{"of a dead process": dead(t), "of somebody else's process": os.Getpid(), "of the same user's process": stranger(t)}
	for name, pid := range pids {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, "data", "postmaster.pid")
			text := strconv.Itoa(pid) + "\n" + filepath.Join(dir, "data") + "\n1700000000\n5432\n\n127.0.0.1\n\nready   \n"
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			again := begin(t, Config{Dir: dir})
			if err := again.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDoneTellsOfACrash(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	s := begin(t, Config{Dir: dir})
	ask(t, s, `CREATE TABLE kept (n integer)`)
	if err := syscall.Kill(s.process.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the server was killed and nobody is told")
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	ask(t, begin(t, Config{Dir: dir}), `TABLE kept`)
}

// begin starts a server for one test.
func begin(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ask runs a statement and returns the first column of its first row, "" if there is none.
func ask(t *testing.T, s *Server, statement string) string {
	t.Helper()
	db, err := sql.Open("postgres", s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var answer string
	if err := db.QueryRowContext(t.Context(), statement).Scan(&answer); err != nil && !errors.Is(err, sql.ErrNoRows) {
		t.Fatal(err)
	}
	return answer
}

// openDir is a folder that every user may enter, which t.TempDir is not.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "localpg-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// listen takes a port for the time of the test.
func listen(t *testing.T) int {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return port
}

// stranger is a living process of the user that runs PostgreSQL, which has nothing to do with it.
func stranger(t *testing.T) int {
	t.Helper()
	as, err := whoRuns()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "600")
	cmd.Dir = "/"
	cmd.SysProcAttr = as.attributes(syscall.SIGKILL)
	p, err := spawn(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.end(syscall.SIGKILL) })
	return p.pid
}

// dead is the number of a process that is no more.
func dead(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}
