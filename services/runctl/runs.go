package main

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"uuid"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

type runsCommand struct {
	Stuck   stuckCommand   `cmd:"" help:"List open runs that have not changed for a while, and what each waits for. Begin here."`
	Show    showCommand    `cmd:"" help:"Everything about one run: the row, its timeline, what is still to be told, and what you can do."`
	List    listCommand    `cmd:"" help:"List runs of all organizations, newest first."`
	Requeue requeueCommand `cmd:"" help:"Send a run's job out again, and shut the old worker out (wf2des)."`
	Fail    failCommand    `cmd:"" help:"End a run as failed, with a reason that the designer reads."`
	Cancel  cancelCommand  `cmd:"" help:"Call a run off (wf2des)."`
}

type listCommand struct {
	Kind         string   `enum:"wf2des,code2wf," default:"" help:"wf2des or code2wf; both without it."`
	State        []string `enum:"parsing,awaiting_confirm,assembling,processing,completed,failed,rejected,cancelled,open" help:"Only these states, with commas between them; open stands for the first four."`
	Organization int64    `help:"Only this organization's."`
	Project      int64    `help:"Only this project's."`
	File         string   `help:"Only this Figma file's (its key)."`
	Before       string   `placeholder:"ID" help:"Only runs made before this one: give the last id of a list to see the next page."`
	Limit        int      `default:"20" help:"How many at most."`
}

func (listCommand) Help() string {
	return `Deleted runs are listed too, and marked.

Examples:

    runctl runs list
    runctl runs list --state open --kind code2wf
    runctl runs list --state failed --project 7 --limit 100
    runctl runs list -o json | jq -r '.items[] | select(.errorMessage != null) | .id'`
}

func (c listCommand) Run(ctx context.Context, s *hand) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if err := c.check(); err != nil {
		return err
	}
	db, err := s.store()
	if err != nil {
		return err
	}
	var runs []lifecycle.Run
	for _, kind := range lifecycle.Kinds {
		if c.Kind != "" && c.Kind != string(kind) {
			continue
		}
		some, err := db.Survey(ctx, store.Survey{Kind: kind, States: states(c.State), OrganizationID: c.Organization, ProjectID: c.Project,
			FigmaFileKey: c.File, Before: c.Before}, c.Limit)
		if err != nil {
			return err
		}
		runs = append(runs, some...)
	}
	slices.SortFunc(runs, func(a, b lifecycle.Run) int { return strings.Compare(b.ID, a.ID) })
	runs = runs[:min(len(runs), c.Limit)]
	return s.show(items(runs, viewOf), func(w io.Writer) { listed(w, runs) })
}

func (c listCommand) check() error {
	if c.Before != "" {
		if err := checkID(c.Before); err != nil {
			return err
		}
	}
	return checkLimit(c.Limit)
}

func checkLimit(limit int) error {
	if limit < 1 || limit > 1000 {
		return usage("--limit must lie between 1 and 1000")
	}
	return nil
}

func checkID(id string) error {
	if u, err := uuid.Parse(id); err != nil || u.String() != id {
		return usage("%q is not a run's id: a UUID in lower case, such as 01980000-0000-7000-8000-000000000001", id)
	}
	return nil
}

func states(words []string) []lifecycle.State {
	var all []lifecycle.State
	for _, word := range words {
		if word == "open" {
			all = append(all, lifecycle.Parsing, lifecycle.AwaitingConfirm, lifecycle.Assembling, lifecycle.Processing)
			continue
		}
		all = append(all, lifecycle.State(word))
	}
	return all
}

func listed(w io.Writer, runs []lifecycle.Run) {
	rows := make([][]string, len(runs))
	for i, r := range runs {
		rows[i] = []string{r.ID, string(r.Kind), stateOf(r), strconv.Itoa(r.Attempt), number(r.OrganizationID), number(r.ProjectID), stamp(r.CreatedAt),
			stamp(r.UpdatedAt), clip(r.UpdatedBy, 36)}
	}
	table(w, []string{"ID", "KIND", "STATE", "ATTEMPT", "ORG", "PROJECT", "CREATED", "CHANGED", "BY"}, rows)
}

func stateOf(r lifecycle.Run) string {
	if r.DeletedAt != nil {
		return string(r.State) + " (deleted)"
	}
	return string(r.State)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
