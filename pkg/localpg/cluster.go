package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ensureCluster makes the data folder unless it is there. It is made under another name and renamed, so that a start
// killed in the middle leaves nothing that looks finished.
func (p programs) ensureCluster(ctx context.Context, f *folder, durable bool) error {
	if _, err := os.Stat(filepath.Join(f.data(), "PG_VERSION")); err == nil {
		return p.as.own(f.data())
	}
	making := f.data() + ".making"
	if err := os.RemoveAll(making); err != nil {
		return err
	}
	if err := os.Mkdir(making, 0o700); err != nil {
		return err
	}
	if err := p.as.own(making); err != nil {
		return err
	}
	if err := p.initdb(ctx, making, durable); err != nil {
		return errors.Join(err, os.RemoveAll(making))
	}
	return os.Rename(making, f.data())
}

func (p programs) initdb(ctx context.Context, dir string, durable bool) error {
	args := []string{"--pgdata=" + dir, "--username=" + Superuser, "--auth=trust", "--encoding=UTF8", "--locale=C"}
	if !durable {
		args = append(args, "--no-sync")
	}
	var printed strings.Builder
	cmd := p.command("initdb", args, syscall.SIGKILL)
	cmd.Stdout, cmd.Stderr = &printed, &printed
	run, err := spawn(cmd)
	if err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	select {
	case <-run.done:
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), run.end(syscall.SIGKILL))
	}
	if run.err != nil {
		return fmt.Errorf("initdb: %w: %s", run.err, strings.TrimSpace(printed.String()))
	}
	return nil
}

// command prepares one of the programs with an environment of its own: what the caller has set for psql must not
// change the server.
func (p programs) command(name string, args []string, sig syscall.Signal) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.dir, name), args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + p.dir + ":/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = p.as.attributes(sig)
	return cmd
}

// waitForOthers lets a server that was killed, or whose parent was, finish dying: its processes notice one after the other.
func waitForOthers(ctx context.Context, data string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		pid := workingIn(data)
		if pid == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("process %d still runs PostgreSQL on %s: stop it first", pid, data)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// workingIn is a living process whose working directory is dir, as that of every PostgreSQL process is its data, 0 if
// there is none.
func workingIn(dir string) int {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is a fixed one: no error
	for _, link := range links {
		if cwd, err := os.Readlink(link); err == nil && cwd == dir {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			return pid
		}
	}
	return 0
}

// clearStalePid removes what a dead server left behind, which PostgreSQL would take for a living one where its
// process number belongs to somebody else by now. Only safe when nobody works in the folder.
func clearStalePid(data string) error {
	err := os.Remove(filepath.Join(data, "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// pidFile is what postmaster.pid tells of a server: its process number, 0 if there is none, and whether it takes
// connections.
type pidFile struct {
	pid   int
	ready bool
}

func postmaster(data string) pidFile {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return pidFile{}
	}
	lines := strings.Split(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 0 {
		return pidFile{}
	}
	const status = 7 // the eighth line; a file half written has fewer
	return pidFile{pid: pid, ready: len(lines) > status && strings.TrimSpace(lines[status]) == "ready"}
}
