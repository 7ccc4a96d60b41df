package main

import (
	"bufio"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"framerun.dev/pkg/resultdoc"
	"framerun.dev/pkg/servicetest"
)

// The command as people and the local stack run it.
func TestCommand(t *testing.T) {
	t.Parallel()
	bin := program(filepath.Join(t.TempDir(), "documentdb"))
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", string(bin), ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	t.Run("answers", bin.answers)
	t.Run("refuses", bin.refuses)
	t.Run("ends with its parent", bin.endsWithItsParent)
}

// program is the path of the built command.
type program string

func (p program) command(env ...string) *exec.Cmd {
	cmd := exec.Command(string(p))
	cmd.Env = env
	return cmd
}

// first reads the first line that the command prints.
func first(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	return strings.TrimSpace(line)
}

// Catches a command that prints its address before it answers, listens elsewhere, or does not end when it is told to.
func (p program) answers(t *testing.T) {
	address := servicetest.FreeAddress(t)
	cmd := p.command("LISTEN="+address, "DATA="+t.TempDir())
	said := first(t, cmd)
	if !strings.HasPrefix(said, "mongodb://"+address+"/framerun") {
		t.Errorf("it says %q", said)
	}
	must(t, enter(t, said).Write(t.Context(), resultdoc.Document{RunID: "a", Attempt: 1}))
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Errorf("a clean end: %v", err)
	}
}

// Catches a server without a password that the network can reach, data that nobody can find again, and a taken port that is waited for.
func (p program) refuses(t *testing.T) {
	taken := servicetest.Listen(t)
	defer taken.Close()
	for _, env := range [][]string{
		{"DATA=x"}, {"LISTEN=127.0.0.1:0"}, {"LISTEN=0.0.0.0:18006", "DATA=x"}, {"LISTEN=:18006", "DATA=x"},
		{"LISTEN=192.0.2.1:18006", "DATA=x"}, {"LISTEN=" + taken.Addr().String(), "DATA=" + t.TempDir()},
	} {
		out, err := p.command(env...).CombinedOutput()
		if err == nil || !strings.HasPrefix(string(out), "documentdb: ") {
			t.Errorf("%v: %v, %s", env, err, out)
		}
	}
}

// Catches a server that outlives whoever has started it, and holds the port against the next.
func (p program) endsWithItsParent(t *testing.T) {
	address := servicetest.FreeAddress(t)
	parent := exec.Command("sh", "-c", `"$0" & wait`, string(p))
	parent.Env = []string{"LISTEN=" + address, "DATA=" + t.TempDir()}
	first(t, parent)
	must(t, parent.Process.Kill())
	servicetest.Eventually(t, "the port is free again", func() bool {
		again := p.command("LISTEN="+address, "DATA="+t.TempDir())
		out, err := again.StdoutPipe()
		must(t, err)
		must(t, again.Start())
		said, _ := bufio.NewReader(out).ReadString('\n')
		again.Process.Kill()
		io.Copy(io.Discard, out)
		again.Wait()
		return said != ""
	})
}
