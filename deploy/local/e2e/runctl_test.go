package e2e

import (
	"bytes"
	"encoding/json/v2"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"framerun.dev/deploy/local/stack"
	"framerun.dev/migrations/platform"
)

// TestOperator finds runs that are stuck, for no worker is there, and frees each of them with the real command, which knows nothing but
// the stack's address file.
func TestOperator(t *testing.T) {
	t.Parallel()
	s := start(t, stack.Config{Worker: "none"})
	for _, story := range []struct {
		name string
		test func(*testing.T, *suite)
	}{
		{"requeue", operatorRequeues},
		{"fail and cancel free the node", operatorEnds},
		{"the queue is shown and not consumed", operatorLooks},
		{"a webhook in a worker's voice", operatorSpeaks},
		{"killed between commit and hint", operatorKilled},
	} {
		t.Run(story.name, func(t *testing.T) { story.test(t, s) })
	}
}

// runctl is the command, not started yet, in the operator's name.
func (s *suite) runctl(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(root, ".bin", "runctl"), args...)
	cmd.Dir = os.TempDir() // not where make up would have put a file
	cmd.Env = []string{"RUNCTL_OPERATOR=" + platform.UserAPI, "HOME=" + scratch()}
	return cmd
}

// ctl runs the command on the stack and expects the exit code.
func (s *suite) ctl(t *testing.T, code int, args ...string) string {
	t.Helper()
	cmd := s.runctl(append(args, "--stack", stack.AddressFile(s.dir))...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("%v: exit code %d, want %d: %s%s", args, got, code, out.String(), errs.String())
	}
	return out.String()
}

// stuck are the ids of the open runs that have not moved, by what they wait for.
func (s *suite) stuck(t *testing.T) map[string]string {
	t.Helper()
	var found struct {
		Items []struct {
			Run struct {
				ID string `json:"id"`
			} `json:"run"`
			WaitsFor string `json:"waitsFor"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(s.ctl(t, 0, "runs", "stuck", "--older-than", "100ms", "-o", "json")), &found); err != nil {
		t.Fatal(err)
	}
	waits := map[string]string{}
	for _, item := range found.Items {
		waits[item.Run.ID] = item.WaitsFor
	}
	return waits
}

// operatorRequeues sends a job out again, and the worker who had the first one is shut out.
func operatorRequeues(t *testing.T, s *suite) {
	r := s.create(t)
	eventually(t, 10*time.Second, "the run waits for a worker", func() bool { return s.stuck(t)[r.id] == "worker" })
	s.ctl(t, 0, "runs", "requeue", r.id)
	eventually(t, 5*time.Second, "the job goes out again", func() bool { return s.jobs(r, "parse") == 2 })
	if got := s.tell(t, r, "parsed", nil); got.text("outcome") != "superseded" || got.body["continue"] != false {
		t.Errorf("the old worker is told %s", got.raw)
	}
	if got := s.tell(t, r, "parsed", map[string]any{"attempt": 2}); got.text("outcome") != "applied" {
		t.Errorf("the new worker is told %s", got.raw)
	}
	s.ask(t, "POST", r.self+"/confirm", map[string]any{"decision": "confirm", "attempt": 2}).want(t, 200)
	s.ctl(t, 0, "runs", "requeue", r.id)
	eventually(t, 5*time.Second, "so does the second job", func() bool { return s.jobs(r, "assemble") >= 1 })
	if got := s.tell(t, r, "completed", map[string]any{"attempt": 3, "result_url": "wf2des/" + r.id + "/3/result.json"}); got.text("outcome") != "applied" {
		t.Errorf("the newest worker is told %s", got.raw)
	}
	s.ctl(t, 4, "runs", "requeue", r.id)
}

// operatorEnds frees nodes, and the designer is told why.
func operatorEnds(t *testing.T, s *suite) {
	const reason = "The generation was stopped. Please start it again."
	body := draft()
	failed := created(s.ask(t, "POST", collection, body).want(t, 201))
	s.ctl(t, 0, "runs", "fail", failed.id, "--reason", reason)
	got := s.ask(t, "GET", failed.self, nil).want(t, 200)
	if got.text("status") != "failed" || got.text("errorMessage") != reason || got.text("updatedBy") != platform.UserAPI {
		t.Errorf("the designer is told %s", got.raw)
	}
	cancelled := created(s.ask(t, "POST", collection, body).want(t, 201))
	s.ctl(t, 0, "runs", "cancel", cancelled.id)
	s.ask(t, "POST", collection, body).want(t, 201)
	s.ctl(t, 4, "runs", "fail", cancelled.id, "--reason", reason)
	eventually(t, 5*time.Second, "the feed tells of it", func() bool {
		return strings.Contains(s.ctl(t, 0, "events", "tail", "--run", cancelled.id, "-o", "json"), "run.framerun.wf2des.cancelled")
	})
	if out := s.ctl(t, 0, "runs", "show", cancelled.id); !strings.Contains(out, "backend "+platform.UserAPI) {
		t.Errorf("the timeline is shown as %s", out)
	}
}

// operatorLooks looks twice and leaves the job where a worker finds it. On a machine that is too busy the SDK takes a late answer for a
// broken one and asks again; what the first answer held is then out of sight for ten seconds.
func operatorLooks(t *testing.T, s *suite) {
	r := s.create(t)
	eventually(t, 5*time.Second, "the job is there", func() bool { return s.jobs(r, "parse") == 1 })
	for range 2 {
		eventually(t, 20*time.Second, "the job is shown", func() bool {
			return strings.Contains(s.ctl(t, 0, "queue", "tail", "wf2des", "--run", r.id, "--limit", "100"), r.id)
		})
	}
	left := 0
	for _, m := range s.SQS.Peek("framerun-wf2des") {
		if strings.Contains(m.Body, r.id) {
			left++
		}
	}
	if left != 1 {
		t.Errorf("the job is in the queue %d times", left)
	}
	s.ctl(t, 3, "queue", "tail", s.at.SQS+"/000000000000/lost")
}

// operatorSpeaks sends what a worker would send, to the real service.
func operatorSpeaks(t *testing.T, s *suite) {
	r := s.create(t)
	s.ctl(t, 0, "webhook", "send", r.id, "progress", "--percent", "40")
	s.ctl(t, 4, "webhook", "send", r.id, "completed") // past the designer
	s.ctl(t, 0, "webhook", "send", r.id, "failed", "--error-code", "model_unavailable")
	if state := s.state(t, r); state != "failed" {
		t.Errorf("the run is %s", state)
	}
	if token := s.ctl(t, 0, "token", "show"); strings.TrimSpace(token) != s.at.Tokens.Plugin {
		t.Errorf("the plugin's token is %q", token)
	}
}

// operatorKilled kills the command when the change is stored and nobody has been told: it waits for a NATS that takes its connection and
// says nothing. The relay and the plugin find out by themselves.
func operatorKilled(t *testing.T, s *suite) {
	silent, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", portBase(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	r := s.create(t)
	eventually(t, 5*time.Second, "the first job has left", func() bool { return s.jobs(r, "parse") == 1 })
	cmd := s.runctl("runs", "requeue", r.id, "--database-url", s.at.Postgres, "--nats-url", "nats://"+silent.Addr().String())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cmd.Process.Kill()
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != -1 {
		t.Fatalf("it ended by itself with %d: nothing is shown", code)
	}
	eventually(t, 5*time.Second, "the job leaves all the same", func() bool { return s.jobs(r, "parse") == 2 })
	if got := s.ask(t, "GET", r.self, nil).want(t, 200); got.text("attempt") != "2" {
		t.Errorf("the plugin sees attempt %s", got.text("attempt"))
	}
}
