package demo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// entry is a line of a run's timeline.
type entry struct {
	Seq     int       `json:"seq"`
	What    string    `json:"what"`
	Outcome string    `json:"outcome"`
	By      string    `json:"by"`
	Actor   string    `json:"actor"`
	From    string    `json:"from"` // "" for created
	To      string    `json:"to"`
	At      time.Time `json:"at"`
}

// timeline expects that exactly these things happened to the run, without a gap, and shows them.
func (r *run) timeline(whats ...string) step {
	return func(ctx context.Context) error {
		a, err := r.d.plugin.ask(ctx, "GET", r.now.Links["timeline"], nil)
		if err != nil {
			return err
		}
		var list struct {
			Items []entry `json:"items"`
		}
		if err := a.read(200, &list); err != nil {
			return err
		}
		var came []string
		for i, e := range list.Items {
			if e.Seq != i+1 || e.Outcome != "applied" {
				return surprise(a.asked, fmt.Sprintf("applied step %d", i+1), fmt.Sprintf("%s %d", e.Outcome, e.Seq))
			}
			came = append(came, e.What)
		}
		if !slices.Equal(came, whats) {
			return surprise(a.asked, strings.Join(whats, ", "), strings.Join(came, ", "))
		}
		r.say("what happened:")
		r.printTimeline(list.Items)
		return nil
	}
}

func (r *run) printTimeline(items []entry) {
	var rows [][]string
	for _, e := range items {
		rows = append(rows, []string{fmt.Sprint(e.Seq), e.What, cmp.Or(e.From, "–") + " → " + e.To, e.By + " " + e.Actor,
			fmt.Sprintf("+%.2f s", e.At.Sub(items[0].At).Seconds())})
	}
	r.d.page.table([]string{"", "what", "from → to", "by", "when"}, rows)
}
