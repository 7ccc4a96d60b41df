// Command runctl is the operator's hand: it finds runs that do not move, says what they wait for, and frees them, through the same
// lifecycle and store as the services.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	os.Exit(run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// exited is how kong, which ends the process after a --help, ends run instead.
type exited int

// run carries one command line out and returns the exit code. What went wrong is a sentence on the error stream.
func run(ctx context.Context, args []string, io streams) (code int) {
	defer func() {
		if e, ok := recover().(exited); ok {
			code = int(e)
		}
	}()
	var c cli
	parser, err := kong.New(&c, options(ctx, io)...)
	if err != nil {
		panic(err) // a mistake in the tags of cli
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if err != nil {
		return fail(io, usage("%v; see runctl %s--help", err, meant(err)))
	}
	s := &hand{globals: c.globals, streams: io}
	defer s.close()
	return fail(io, command.Run(s))
}

func options(ctx context.Context, io streams) []kong.Option {
	return []kong.Option{
		kong.Name("runctl"), kong.Description(description), kong.Writers(io.out, io.err),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: false, WrapUpperBound: 120}),
		kong.BindTo(ctx, (*context.Context)(nil)),
	}
}

// meant names the command that an unusable line was meant for, as far as it can be told.
func meant(err error) (path string) {
	parsing, ok := errors.AsType[*kong.ParseError](err)
	if !ok {
		return ""
	}
	for _, step := range parsing.Context.Path {
		if step.Command != nil {
			path += step.Command.Name + " "
		}
	}
	return path
}

// fail tells what went wrong, if anything did, and turns it into the exit code.
func fail(io streams, err error) int {
	code := exitCode(err)
	if err != nil {
		fmt.Fprintln(io.err, "runctl: "+sentence(err))
	}
	return code
}
