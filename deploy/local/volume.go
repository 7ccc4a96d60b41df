package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"framerun.dev/deploy/local/fuzz"
	"framerun.dev/deploy/local/stack"
)

// vary sends N varied requests, made from SEED, to a suite of its own, and says what the suite did that it should not have done.
func vary(ctx context.Context, out io.Writer) (err error) {
	config, err := configure(out)
	if err != nil {
		return err
	}
	count, seed := 1_000_000, 1
	for name, number := range map[string]*int{"N": &count, "SEED": &seed} {
		if text := os.Getenv(name); text != "" {
			if *number, err = strconv.Atoi(text); err != nil || *number < 0 {
				return fmt.Errorf("%s must be a whole number, such as %d", name, count)
			}
		}
	}
	// The account is held against the whole database, so it must be this run's alone.
	config.Worker, config.DatabaseURL, config.Env = "none", "", fuzz.Env
	config.Dir = filepath.Join(config.Dir, "fuzz") // a suite that is up keeps its own
	s, err := stack.Start(ctx, config)
	if err != nil {
		return err
	}
	defer func() {
		if stopped := s.Stop(); err == nil {
			err = stopped
		}
	}()
	report, err := fuzz.Run(ctx, fuzz.Config{Stack: s, Requests: count, Seed: uint64(seed), Out: out})
	if err != nil {
		return err
	}
	report.Write(out)
	if missing := report.Missing(); len(missing) > 0 {
		fmt.Fprintf(out, "\nno answer had one of these codes, though it could have: %s\n", strings.Join(missing, ", "))
	}
	if n := len(report.Failures); n > 0 {
		return fmt.Errorf("fuzz: %d failures with seed %d, told above", n, seed)
	}
	return nil
}
