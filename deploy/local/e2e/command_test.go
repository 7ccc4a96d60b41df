package e2e

import (
	"bytes"
	"encoding/json/v2"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"framerun.dev/deploy/local/stack"
)

// TestCommand runs what `make up` and `make demo` run: the demo passes on a suite that is up, the address file says what it promises, and
// neither a kill nor a SIGTERM leaves anything behind.
func TestCommand(t *testing.T) {
	t.Parallel()
	killed := up(t)
	t.Run("stack.json", func(t *testing.T) { addressFile(t, killed.suite) })
	t.Run("demo", func(t *testing.T) { demoPasses(t, killed) })
	t.Run("kill -9 leaves nothing", func(t *testing.T) { killed.end(t, syscall.SIGKILL, "signal: killed") })
	t.Run("SIGTERM leaves nothing", func(t *testing.T) {
		ended := up(t)
		ended.end(t, syscall.SIGTERM, "exit status 0")
		if _, err := os.Stat(stack.AddressFile(state())); !os.IsNotExist(err) {
			t.Errorf("stack.json is still there: %v", err)
		}
	})
}

// command is a running `local up`.
type command struct {
	*suite
	cmd   *exec.Cmd
	env   []string
	out   *lines
	ended chan struct{}
}

// state is the folder in which the command keeps its address file.
func state() string { return filepath.Join(root, "deploy", "local", ".state") }

func local() string { return filepath.Join(root, ".bin", "local") }

// up starts the command and waits until it has written its address.
func up(t *testing.T) *command {
	t.Helper()
	if err := os.RemoveAll(state()); err != nil {
		t.Fatal(err)
	}
	c := &command{out: &lines{}, ended: make(chan struct{}), cmd: exec.Command(local(), "up"),
		env: append(os.Environ(), "DEMO=off", "WORKER=scripted", "PACE=20ms", "DATABASE_URL=", "TMPDIR="+scratch(), fmt.Sprintf("PORT_BASE=%d", portBase(t)))}
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = c.env, c.out, c.out
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the command ends with its parent, which the kernel takes for this thread
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.cmd.Wait()
			close(c.ended)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.cmd.Process.Kill()
		<-c.ended
	})
	eventually(t, 30*time.Second, "the suite is up", func() bool {
		a, running, err := stack.ReadAddress(state())
		if err != nil {
			t.Fatal(err)
		}
		c.suite = &suite{at: a}
		return running
	})
	return c
}

// end sends the signal and expects that the command, its children and all its ports go.
func (c *command) end(t *testing.T, sig syscall.Signal, how string) {
	t.Helper()
	family := descendants(t, c.cmd.Process.Pid)
	if len(family) < 5 { // four services and PostgreSQL
		t.Fatalf("only %d processes below the command: nothing is shown", len(family))
	}
	if err := c.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	eventually(t, 15*time.Second, "the command ends", func() bool { return isClosed(c.ended) })
	if got := c.cmd.ProcessState.String(); got != how {
		t.Errorf("the command ends with %q, want %q", got, how)
	}
	for pid, name := range family {
		eventually(t, 10*time.Second, name+" is gone too", func() bool { return !alive(pid) })
	}
	for _, address := range c.listeners(t) {
		if conn, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			conn.Close()
			t.Errorf("somebody still listens on %s", address)
		}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// listeners are the addresses of all that was up.
func (c *command) listeners(t *testing.T) []string {
	t.Helper()
	all := []string{c.at.Gateway, c.at.SQS, c.at.S3, c.at.Issuer, c.at.NATS, c.at.Postgres}
	for _, s := range c.at.Services {
		all = append(all, s.URL, s.Ops)
	}
	for i, text := range all {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = u.Host
	}
	return all
}

// descendants are the living processes below pid, by what they are called.
func descendants(t *testing.T, pid int) map[int]string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	children, names := map[int][]int{}, map[int]string{}
	for _, stat := range stats {
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		name, fields, ok := statOf(child)
		if !ok {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], child)
		names[child] = name
	}
	found := map[int]string{}
	for generation := children[pid]; len(generation) > 0; {
		var next []int
		for _, child := range generation {
			found[child] = names[child]
			next = append(next, children[child]...)
		}
		generation = next
	}
	return found
}

// statOf reads /proc/pid/stat: the name, and the fields after it, which begin with the state and the parent.
func statOf(pid int) (name string, fields []string, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", nil, false // it has gone meanwhile
	}
	begin, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	return string(text[begin+1 : end]), strings.Fields(string(text[end+1:])), true
}

// alive is false for a zombie: it only waits for somebody to read its end.
func alive(pid int) bool {
	_, fields, ok := statOf(pid)
	return ok && fields[0] != "Z"
}

// demoPasses plays the demo twice: what the first leaves must not be in the way of the second.
func demoPasses(t *testing.T, c *command) {
	for range 2 {
		cmd := exec.Command(local(), "demo")
		cmd.Env = c.env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, text := range []string{"playing on the suite at " + c.at.Gateway, "409  open_run", "→ awaiting_confirm", "completed, placed, adopted"} {
			if !bytes.Contains(out, []byte(text)) {
				t.Errorf("the demo does not say %q:\n%s", text, out)
			}
		}
	}
}

// addressFile reads stack.json as a tool would, without this package's types.
func addressFile(t *testing.T, s *suite) {
	raw, err := os.ReadFile(stack.AddressFile(state()))
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	for path, members := range map[string][]string{
		"":         {"gateway", "services", "postgres", "nats", "sqs", "queues", "deadLetters", "s3", "bucket", "documentdb", "webhook", "issuer", "tokens", "seed"},
		"services": {"intake", "status", "interaction", "query"},
		"queues":   {"wf2des", "des2wf", "code2wf"}, "deadLetters": {"wf2des", "des2wf", "code2wf"},
		"webhook": {"url", "secret"},
		"tokens":  {"plugin", "api", "otherOrganization"},
		"seed": {"organizationId", "projectId", "otherProjectId", "otherOrganizationProjectId", "pageImportId", "unfinishedPageImportId",
			"otherProjectPageImportId"},
	} {
		object := file
		if path != "" {
			object = file[path].(map[string]any)
		}
		for _, member := range members {
			if _, ok := object[member]; !ok {
				t.Errorf("%q has no %q, only %v", path, member, slices.Sorted(maps.Keys(object)))
			}
		}
	}
	if info, err := os.Stat(stack.AddressFile(state())); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("stack.json holds secrets and can be read by others: %v, %v", info, err)
	}
	tokensAreWhatTheySay(t, s)
}

// tokensAreWhatTheySay signs in with each of them.
func tokensAreWhatTheySay(t *testing.T, s *suite) {
	t.Helper()
	r := s.ask(t, "POST", collection, draft()).want(t, 201)
	if r.text("triggerSurface") != "plugin" {
		t.Errorf("the plugin's token makes runs of surface %s", r.text("triggerSurface"))
	}
	api := s.ask(t, "POST", collection, draft(), "Authorization", "Bearer "+s.at.Tokens.API).want(t, 201)
	if api.text("triggerSurface") != "api" {
		t.Errorf("the API's token makes runs of surface %s", api.text("triggerSurface"))
	}
	foreign := "Bearer " + s.at.Tokens.OtherOrganization
	s.ask(t, "GET", r.header.Get("Location"), nil, "Authorization", foreign).want(t, 404)
	theirs := fmt.Sprintf("/v1/projects/%d/wf2des", s.at.Seed.OtherOrganizationProjectID)
	s.ask(t, "POST", theirs, draft(), "Authorization", foreign).want(t, 201)
	s.ask(t, "POST", theirs, draft()).want(t, 404)
	for id, status := range map[string]int{s.at.Seed.PageImportID: 201, s.at.Seed.UnfinishedPageImportID: 422, s.at.Seed.OtherProjectPageImportID: 422} {
		body := map[string]any{"pageImportId": id, "figmaFileKey": "itMrdXTfcIHTHbSGK0Ivox", "screenId": "x"}
		s.ask(t, "POST", "/v1/projects/1/code2wf", body).want(t, status)
	}
}
