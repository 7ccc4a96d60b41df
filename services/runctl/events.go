package main

import (
	"context"
	"fmt"
	"time"

	"framerun.dev/pkg/events"
	"framerun.dev/pkg/lifecycle"
)

type eventsCommand struct {
	Tail tailEventsCommand `cmd:"" help:"Read the public feed, oldest first."`
}

type tailEventsCommand struct {
	Since  time.Duration `default:"1h" help:"What was told in the last so long; 0 for all that is kept (two weeks)."`
	Kind   string        `enum:"wf2des,code2wf," default:"" help:"wf2des or code2wf; both without it."`
	Of     string        `name:"run" placeholder:"ID" help:"Only events of this run."`
	Follow bool          `short:"f" help:"Go on with what comes, until Ctrl-C."`
}

func (tailEventsCommand) Help() string {
	return `Nobody else's reading is disturbed: the consumer is this command's own. The feed is at least once, and per run in order of the timeline. With -o json each event is one line: a CloudEvent 1.0 as the platform gets it.

Examples:

    runctl events tail
    runctl events tail -f --kind wf2des
    runctl events tail --since 0 --run 01980000-0000-7000-8000-000000000001 -o json | jq .data.to`
}

func (c tailEventsCommand) Run(ctx context.Context, s *hand) error {
	if !c.Follow {
		var cancel context.CancelFunc
		ctx, cancel = s.bounded(ctx)
		defer cancel()
	}
	if c.Of != "" {
		if err := checkID(c.Of); err != nil {
			return err
		}
	}
	bus, err := s.bus()
	if err != nil {
		return err
	}
	defer bus.Close()
	reading := events.Reading{Kind: lifecycle.Kind(c.Kind), Follow: c.Follow}
	if c.Since > 0 {
		reading.Since = time.Now().Add(-c.Since)
	}
	return bus.Read(ctx, reading, func(e events.CloudEvent) error {
		if c.Of != "" && e.Data.ID != c.Of {
			return nil
		}
		return s.tellEvent(e)
	})
}

func (s *hand) tellEvent(e events.CloudEvent) error {
	if s.Output == "json" {
		return s.line(e)
	}
	from := "-"
	if e.Data.From != nil {
		from = string(*e.Data.From)
	}
	_, err := fmt.Fprintf(s.out, "%s  %-7s %s  %s → %s  attempt %d  by %s %s\n", stamp(e.Time), e.Data.Kind, e.Data.ID, from, e.Data.To, e.Data.Attempt,
		e.Data.By, plain(e.Data.Actor))
	return err
}
