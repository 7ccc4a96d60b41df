package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"framerun.dev/pkg/lifecycle"
)

// profiled are the operations whose service can be looked into while it works.
var profiled = map[string]func(s *suite, history int64) (contender, error){
	"create":  func(s *suite, _ int64) (contender, error) { return s.create(lifecycle.WF2Des), nil },
	"webhook": func(s *suite, _ int64) (contender, error) { return s.complete(), nil },
	"confirm": func(s *suite, _ int64) (contender, error) { return s.confirm(), nil },
	"get-sql": func(s *suite, history int64) (contender, error) { return s.cold(history)[0], nil },
	"list":    func(s *suite, _ int64) (contender, error) { return s.list(newest50)[0], nil },
	"get-hot": func(s *suite, _ int64) (contender, error) {
		sides, err := s.hot(context.Background(), false)
		if err != nil {
			return contender{}, err
		}
		return sides[0], nil
	},
	"relay": func(s *suite, _ int64) (contender, error) { return s.relay(), nil },
}

// profiling writes a CPU profile of the service that does an operation, taken while it does nothing else, with its pace beside it: what
// stands in the way of a better figure.
func profiling(operation string) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		return b.within(ctx, "suite", "beside", func(s *suite) error {
			who, err := profiled[operation](s, b.history)
			if err != nil {
				return err
			}
			for _, clients := range b.clients {
				file := fmt.Sprintf("%s-c%d.pprof", operation, clients)
				profile := make(chan error, 1)
				go func() { profile <- s.profile(ctx, who.service, file) }()
				standings, err := b.hold(ctx, s, clients, b.pace, who)
				if err != nil {
					return err
				}
				if err := <-profile; err != nil {
					return err
				}
				b.report.say("%s, c=%d: %s/s, p50 %s ms, p99 %s ms; `go tool pprof -top -cum %s` tells where the time goes", operation, clients,
					rate(standings[0].rate), millis(standings[0].p50), millis(standings[0].p99), file)
			}
			return nil
		})
	}
}

// profile asks the service's ops port for what it does in the next seconds.
func (s *suite) profile(ctx context.Context, service, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.at.Services[service].Ops+"/debug/pprof/profile?seconds=8", nil)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("bench: profile of %s: %w", service, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("bench: profile of %s: %w", service, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("bench: profile of %s: %s %.100s", service, res.Status, body)
	}
	return os.WriteFile(file, body, 0o644)
}

func profiledNames() string { return strings.Join(slices.Sorted(maps.Keys(profiled)), ", ") }
