package demo

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// inInbox expects the runs among those that are finished and that nobody has placed yet.
func (d *demo) inInbox(runs ...*run) step {
	return func(ctx context.Context) error {
		waiting, err := d.unplaced(ctx, runs[0])
		if err != nil {
			return err
		}
		for _, r := range runs {
			if !waiting[r.now.ID] {
				return surprise("the unplaced inbox", "run "+r.now.ID, fmt.Sprintf("%d others", len(waiting)))
			}
		}
		return d.sayInbox(runs, "%d unplaced, %s among them", len(waiting))
	}
}

// notInInbox expects none of the runs there.
func (d *demo) notInInbox(runs ...*run) step {
	return func(ctx context.Context) error {
		waiting, err := d.unplaced(ctx, runs[0])
		if err != nil {
			return err
		}
		for _, r := range runs {
			if waiting[r.now.ID] {
				return surprise("the unplaced inbox", "no placed run", r.now.ID)
			}
		}
		return d.sayInbox(runs, "%d unplaced, %s not among them", len(waiting))
	}
}

func (d *demo) sayInbox(runs []*run, format string, waiting int) error {
	which := "this one"
	if len(runs) > 1 {
		which = fmt.Sprintf("these %d", len(runs))
	}
	d.page.line(time.Since(d.began), "     inbox: "+fmt.Sprintf(format, waiting, which))
	return nil
}

// unplaced reads all pages of the inbox of a run's kind.
func (d *demo) unplaced(ctx context.Context, r *run) (map[string]bool, error) {
	waiting := map[string]bool{}
	next := r.collection() + "?materialized=false&limit=100"
	for next != "" {
		var list struct {
			Items      []resource `json:"items"`
			NextCursor *string    `json:"nextCursor"`
		}
		a, err := d.plugin.ask(ctx, "GET", next, nil)
		if err != nil {
			return nil, err
		}
		if err := a.read(200, &list); err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			waiting[item.ID] = true
		}
		if next = nextPage(a); (next != "") != (list.NextCursor != nil) {
			return nil, surprise(a.asked, "Link and nextCursor together", a.header.Get("Link"))
		}
	}
	return waiting, nil
}

// nextPage is the target of Link: rel="next", or "" on the last page.
func nextPage(a answer) string {
	target, rel, _ := strings.Cut(a.header.Get("Link"), ">")
	if rel != `; rel="next"` {
		return ""
	}
	return strings.TrimPrefix(target, "<")
}
