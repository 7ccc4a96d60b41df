// Command bench measures the whole suite, through its real services over loopback with tokens and signatures verified, logs and metrics
// on, against what the same machine can do without it: pgbench writing and reading the same rows in the same PostgreSQL server, River
// storing the same jobs, a bare HTTP handler writing the same bytes. `make bench`, `make bench-quick` and `make bench-reading` call it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

var usage = `usage: bench quick | reading | writing | growth | all | profile <operation>

  quick      the key ratios, in less than a minute and a half
  reading    GET hot, 304 and from PostgreSQL, lists, waiting; about ten minutes
  writing    create, webhook, confirm, relay
  growth     the same operations at 10 thousand, 1 million and 5 million rows
  all        all three as Markdown, in about forty minutes
  profile    a CPU profile of the service that does the operation: ` + profiledNames() + `

environment: PORT_BASE (18000), ROUNDS, CLIENTS (64 alone, say; quick has its own)
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "\n%v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "bare" { // the program's own child
		return serveBare(os.Stdin, args[1])
	}
	wishes := map[string]func(context.Context, *bench) error{
		"quick": withHistory(quick), "reading": withHistory(reading), "writing": withHistory(writing), "growth": growth,
		"all": withHistory(writing, reading, growth),
	}
	if len(args) == 2 && args[0] == "profile" && profiled[args[1]] != nil {
		wishes["profile"], args = withHistory(profiling(args[1])), args[:1]
	}
	if len(args) != 1 || wishes[args[0]] == nil {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	c, err := configure(args[0] == "quick")
	if err != nil {
		return err
	}
	return measure(ctx, c, wishes[args[0]])
}

// configure finds the suite's own files from this program's place, <root>/.bin.
func configure(quick bool) (config, error) {
	self, err := os.Executable()
	if err != nil {
		return config{}, fmt.Errorf("bench: %w", err)
	}
	bin := filepath.Dir(self)
	c := config{
		bin: bin, routes: filepath.Join(filepath.Dir(bin), "deploy", "base", "routes.yaml"), portBase: 18000, log: os.Stderr, out: os.Stdout,
		pace: pace{rounds: 5, length: 1500 * time.Millisecond, most: 60_000}, history: 200_000,
		patience: 4 * time.Second,
		clients:  []int{1, 4, 16, 64, 256}, sizes: []int64{10_000, 1_000_000, 5_000_000}, waiters: []int{1_000, 10_000},
	}
	if quick {
		c.pace.length, c.history = 700*time.Millisecond, 100_000
	}
	for name, set := range map[string]func(n int){
		"PORT_BASE": func(n int) { c.portBase = n },
		"ROUNDS":    func(n int) { c.pace.rounds = n },
		"CLIENTS":   func(n int) { c.clients = []int{n} },
	} {
		text := os.Getenv(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return c, fmt.Errorf("%s must be a whole number above 0", name)
		}
		set(n)
	}
	return c, nil
}
