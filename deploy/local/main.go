// Command local runs the whole suite on this machine and plays its main job. `make up` and `make demo` call it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	"framerun.dev/deploy/local/demo"
	"framerun.dev/deploy/local/stack"
)

const usage = `usage: local up | demo | fuzz

  up      starts the suite, plays the demo once and stays up until Ctrl-C
  demo    plays the demo on the suite that is up, or on one of its own
  fuzz    sends N (1000000) varied requests, made from SEED (1), to a suite of its own, and checks every answer

environment: PORT_BASE (18000), WORKER (scripted | none), DEMO (on | off), DOCUMENTDB (off | on), PACE (700ms), DATABASE_URL,
  PARSING_DEADLINE, ASSEMBLING_DEADLINE, PROCESSING_DEADLINE (15m), CONFIRM_DEADLINE (0: none), REAPER_DRY_RUN (false)
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // whoever reads along may leave; the suite still stops in good order
	commands := map[string]func(context.Context, io.Writer) error{"up": up, "demo": play, "fuzz": vary}
	command, ok := commands[argument()]
	if !ok {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	endWithParent()
	if err := command(ctx, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "\n%v\n", err)
		os.Exit(1)
	}
}

func argument() string {
	if len(os.Args) != 2 {
		return ""
	}
	return os.Args[1]
}

// endWithParent asks the kernel to end this process in good order when the one that started it is killed: make, as a rule. Otherwise
// a killed make would leave the suite behind.
func endWithParent() {
	runtime.LockOSThread() // for ever: the wish belongs to the process, but is asked for by this thread
	const prSetPdeathsig = 1
	syscall.RawSyscall(syscall.SYS_PRCTL, prSetPdeathsig, uintptr(syscall.SIGTERM), 0)
}

// up runs the suite until it is told to stop.
func up(ctx context.Context, out io.Writer) error {
	began := time.Now()
	config, err := configure(out)
	if err != nil {
		return err
	}
	demoWanted, known := map[string]bool{"": true, "on": true, "off": false}[os.Getenv("DEMO")]
	if !known {
		return errors.New("DEMO must be on or off")
	}
	s, err := stack.Start(ctx, config)
	if err != nil {
		return err
	}
	show(out, s.Address(), config, time.Since(began))
	if demoWanted && config.Worker == "scripted" {
		if err := demo.Run(ctx, out, s.Address()); err != nil && ctx.Err() == nil {
			fmt.Fprintf(out, "\nThe demo met a surprise:\n%v\n", err)
		}
	}
	if ctx.Err() == nil {
		fmt.Fprintln(out, "\nThe suite stays up. Ctrl-C stops it.")
	}
	<-ctx.Done()
	fmt.Fprintln(out, "\nstopping …")
	err = s.Stop()
	fmt.Fprintln(out, "stopped")
	return err
}

// play plays the demo, on the suite that is up if there is one.
func play(ctx context.Context, out io.Writer) error {
	config, err := configure(out)
	if err != nil {
		return err
	}
	if a, running, err := stack.ReadAddress(config.Dir); err == nil && running && answers(a.Gateway) {
		if a.Worker != "scripted" {
			return fmt.Errorf("the suite at %s runs without a worker (WORKER=none): nobody would answer the demo's jobs", a.Gateway)
		}
		fmt.Fprintf(out, "playing on the suite at %s\n", a.Gateway)
		return demo.Run(ctx, out, a)
	}
	config.Worker = "scripted"
	s, err := stack.Start(ctx, config)
	if err != nil {
		return err
	}
	return errors.Join(demo.Run(ctx, out, s.Address()), s.Stop())
}

func answers(gateway string) bool {
	u, err := url.Parse(gateway)
	if err != nil {
		return false
	}
	conn, err := net.DialTimeout("tcp", u.Host, time.Second)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// configure reads the environment. The suite's own files are found from this program's place, <root>/.bin.
func configure(out io.Writer) (stack.Config, error) {
	self, err := os.Executable()
	if err != nil {
		return stack.Config{}, err
	}
	bin := filepath.Dir(self)
	local := filepath.Join(filepath.Dir(bin), "deploy", "local")
	c := stack.Config{
		Dir: filepath.Join(local, ".state"), Bin: bin, Routes: filepath.Join(local, "..", "base", "routes.yaml"),
		Worker: os.Getenv("WORKER"), DatabaseURL: os.Getenv("DATABASE_URL"), Log: out,
	}
	if text := os.Getenv("PORT_BASE"); text != "" {
		if c.PortBase, err = strconv.Atoi(text); err != nil {
			return c, fmt.Errorf("PORT_BASE must be a port number, such as 19000")
		}
	}
	if text := os.Getenv("PACE"); text != "" {
		if c.Pace, err = time.ParseDuration(text); err != nil {
			return c, fmt.Errorf("PACE must be a duration, such as 700ms")
		}
	}
	if c.Worker == "" {
		c.Worker = "scripted"
	}
	c.Env = map[string]map[string]string{"status": given("PARSING_DEADLINE", "CONFIRM_DEADLINE", "ASSEMBLING_DEADLINE", "PROCESSING_DEADLINE",
		"REAPER_DRY_RUN")}
	var known bool
	if c.DocumentDB, known = map[string]bool{"": false, "off": false, "on": true}[os.Getenv("DOCUMENTDB")]; !known {
		return c, errors.New("DOCUMENTDB must be on or off")
	}
	return c, nil
}

// given are those of the variables that are set.
func given(names ...string) map[string]string {
	env := map[string]string{}
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			env[name] = value
		}
	}
	return env
}

// show prints where everything is.
func show(out io.Writer, a stack.Address, c stack.Config, took time.Duration) {
	fmt.Fprintf(out, "\nFramerun is up, after %.1f s.\n\n", took.Seconds())
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "  gateway\t%s\tthe plugin's one origin\n", a.Gateway)
	for _, name := range stack.Names {
		s := a.Services[name]
		fmt.Fprintf(t, "  %s\t%s\tops %s\n", name, s.URL, s.Ops)
	}
	fmt.Fprintf(t, "  PostgreSQL\t%s\n  NATS\t%s\n  SQS\t%s\tstand-in; what was accepted: /_framerun/accepted\n  S3\t%s\tstand-in, bucket %s\n",
		a.Postgres, a.NATS, a.SQS, a.S3, a.Bucket)
	fmt.Fprintf(t, "  DocumentDB\t%s\n  issuer\t%s\ttokens for a day\n  worker\t%s\n", documentDB(a), a.Issuer, c.Worker)
	t.Flush()
	fmt.Fprintf(out, "\n  addresses, tokens, secrets   %s\n  logs                         %s\n", stack.AddressFile(c.Dir), filepath.Join(c.Dir, "logs"))
	fmt.Fprint(out, "  the operator's command       .bin/runctl runs stuck --older-than 1m\n")
}

func documentDB(a stack.Address) string {
	if a.DocumentDB == nil {
		return "off\tDOCUMENTDB=on starts one"
	}
	return *a.DocumentDB + "\tstand-in"
}
