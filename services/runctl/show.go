package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

type showCommand struct {
	ID string `arg:"" help:"The run's id."`
}

func (showCommand) Help() string {
	return `In the timeline, a line that is not "applied" changed nothing: duplicate, already_terminal and superseded are workers who came too late, noted is an operator's hand on the outbox. Long after a run has ended, only its newest line may be kept.

Examples:

    runctl runs show 01980000-0000-7000-8000-000000000001
    runctl runs show 01980000-0000-7000-8000-000000000001 -o json | jq .waitsFor`
}

// shown is all that is known about a run.
type shown struct {
	Run runView `json:"run"`
	diagnosis
	HeardAt  *string     `json:"heardAt"` // when its worker last told progress; null where deadlines are off or nothing was told
	Timeline []lineView  `json:"timeline"`
	Outbox   []entryView `json:"outbox"`
}

func (c showCommand) Run(ctx context.Context, s *hand) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	run, err := s.find(ctx, c.ID)
	if err != nil {
		return err
	}
	db, err := s.store()
	if err != nil {
		return err
	}
	timeline, err := db.Timeline(ctx, run.Ref)
	if err != nil {
		return err
	}
	entries, err := db.Entries(ctx, store.EntryFilter{RunIDs: []string{run.ID}}, 1000)
	if err != nil {
		return err
	}
	heard, err := db.Heard(ctx, run.Ref, run.Attempt)
	if err != nil {
		return err
	}
	d := diagnose(run, entries)
	var heardAt *string
	if !heard.IsZero() {
		heardAt = new(stamp(heard))
	}
	all := shown{viewOf(run), d, heardAt, items(timeline, lineOf).Items, items(entries, entryOf).Items}
	return s.show(all, func(w io.Writer) {
		tellRun(w, run, heard)
		tellTimeline(w, timeline)
		if len(entries) > 0 {
			fmt.Fprintln(w, "\nstill in the outbox")
			tellEntries(w, entries)
		}
		fmt.Fprintf(w, "\n%s\n", d.Says)
		for _, line := range d.Try {
			fmt.Fprintln(w, "    "+line)
		}
	})
}

func tellRun(w io.Writer, r lifecycle.Run, heard time.Time) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	say := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, plain(value))
		}
	}
	say("run", r.ID)
	say("kind", string(r.Kind)+edge(r))
	say("state", stateOf(r)+", attempt "+strconv.Itoa(r.Attempt))
	say("tenant", fmt.Sprintf("organization %d, project %d", r.OrganizationID, r.ProjectID))
	say("figma", r.FigmaFileKey+" "+cmp.Or(r.WFNodeID, "page import "+r.PageImportID)+", screen "+strconv.Quote(r.ScreenID))
	say("created", stamp(r.CreatedAt)+" by "+r.CreatedBy)
	say("changed", stamp(r.UpdatedAt)+" by "+r.UpdatedBy)
	if !heard.IsZero() {
		say("heard", stamp(heard)+", its worker's last progress")
	}
	if r.ResultURL != nil {
		say("result", *r.ResultURL)
	}
	if r.ErrorMessage != nil {
		say("error", *r.ErrorMessage)
	}
	t.Flush()
}

func edge(r lifecycle.Run) string {
	switch {
	case r.Kind != lifecycle.WF2Des:
		return ""
	case r.AutoConfirm:
		return ", edge " + string(r.Edge) + ", nobody is asked to confirm"
	}
	return ", edge " + string(r.Edge)
}

func tellTimeline(w io.Writer, timeline []lifecycle.Event) {
	fmt.Fprintln(w, "\ntimeline")
	rows := make([][]string, len(timeline))
	for i, e := range timeline {
		more := ""
		switch {
		case e.Data.ErrorMessage != nil:
			more = *e.Data.ErrorMessage
		case e.Data.Delivery != nil:
			more = *e.Data.Delivery
		}
		rows[i] = []string{strconv.Itoa(e.Seq), stamp(e.At), string(e.What), string(e.Outcome), string(e.By.Voice) + " " + clip(e.By.Name, 36),
			fmt.Sprint(cmp.Or(string(e.From), "-"), " → ", e.To), strconv.Itoa(e.Attempt), clip(more, 80)}
	}
	table(w, []string{"#", "AT", "WHAT", "OUTCOME", "BY", "STATE", "ATTEMPT", ""}, rows)
}
