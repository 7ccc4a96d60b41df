// Package pgbench is for asking PostgreSQL's own benchmark program what the same rows cost without a service around them.
package pgbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"framerun.dev/deploy/bench/load"
)

// ErrAbsent says that the machine has no pgbench: PostgreSQL from npm, for example, comes without it.
var ErrAbsent = errors.New("pgbench is not installed (Debian: apt-get install postgresql), so its baselines are left out")

// Find is where pgbench is. Error: ErrAbsent.
func Find() (string, error) {
	if bin := os.Getenv("POSTGRES_BIN"); bin != "" {
		if path, err := exec.LookPath(filepath.Join(bin, "pgbench")); err == nil {
			return path, nil
		}
	}
	if path, err := exec.LookPath("pgbench"); err == nil {
		return path, nil
	}
	installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench") // the pattern is a fixed one: no error
	if len(installed) == 0 {
		return "", ErrAbsent
	}
	return installed[len(installed)-1], nil
}

// Run is one run of a script.
type Run struct {
	Path    string // of pgbench
	URL     string // of the database
	Script  string
	Clients int
	Count   int   // transactions in all, rounded up to as many for each client; or else
	Seconds int   // how long
	First   int64 // the script's first number: it works on First, First+1, …
}

// Do runs the script, every statement prepared once a connection, as the suite does. Only the steady part counts, in which all
// connections are warm and at work. A transaction that fails is an error.
func (r Run) Do(ctx context.Context) (load.Sample, error) {
	dir, err := os.MkdirTemp("", "framerun-pgbench-")
	if err != nil {
		return load.Sample{}, fmt.Errorf("pgbench: %w", err)
	}
	defer os.RemoveAll(dir)
	script := filepath.Join(dir, "script.sql")
	if err := os.WriteFile(script, []byte(r.Script), 0o600); err != nil {
		return load.Sample{}, fmt.Errorf("pgbench: %w", err)
	}
	cmd := exec.CommandContext(ctx, r.Path, r.arguments(dir, script)...)
	cmd.Env = append(os.Environ(), "PGOPTIONS=-c plan_cache_mode=force_generic_plan -c timezone=UTC")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return load.Sample{}, fmt.Errorf("pgbench: %w: %s", err, said.Bytes())
	}
	done, err := r.processed(out.String())
	if err != nil {
		return load.Sample{}, err
	}
	log, err := readLog(dir)
	if err != nil {
		return load.Sample{}, err
	}
	if len(log) != done {
		return load.Sample{}, fmt.Errorf("pgbench: %d transactions done, %d in its log", done, len(log))
	}
	return steady(log, r.Clients), nil
}

func (r Run) arguments(dir, script string) []string {
	bound := "--transactions=" + strconv.Itoa(r.each())
	if r.Seconds > 0 {
		bound = "--time=" + strconv.Itoa(r.Seconds)
	}
	return []string{"--no-vacuum", "--protocol=prepared", "--file=" + script, bound,
		"--client=" + strconv.Itoa(r.Clients), "--jobs=" + strconv.Itoa(min(r.Clients, 2)),
		"--define=i=-1", "--define=first=" + strconv.FormatInt(r.First, 10), "--define=clients=" + strconv.Itoa(r.Clients),
		"--log", "--log-prefix=" + filepath.Join(dir, "log"), r.URL}
}

func (r Run) each() int { return (r.Count + r.Clients - 1) / r.Clients }

var reported = regexp.MustCompile(`number of transactions actually processed: (\d+)`)

// processed reads pgbench's report. It must tell of every transaction asked for.
func (r Run) processed(report string) (int, error) {
	n := reported.FindStringSubmatch(report)
	if n == nil {
		return 0, fmt.Errorf("pgbench: a report that cannot be read: %s", report)
	}
	count, err := strconv.Atoi(n[1])
	if err != nil || r.Seconds == 0 && count != r.each()*r.Clients {
		return 0, fmt.Errorf("pgbench: %s transactions of %d: %s", n[1], r.each()*r.Clients, report)
	}
	return count, nil
}
