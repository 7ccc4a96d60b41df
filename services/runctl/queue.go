package main

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"framerun.dev/pkg/jobs"
	"framerun.dev/pkg/lifecycle"
)

type queueCommand struct {
	Tail tailQueueCommand `cmd:"" help:"Show what lies in the workers' queues, without consuming it."`
}

type tailQueueCommand struct {
	Queue string `arg:"" optional:"" help:"wf2des, des2wf, code2wf, or a queue's URL (a dead letter queue, for example); all three without it."`
	Of    string `name:"run" placeholder:"ID" help:"Only messages about this run."`
	Limit int    `default:"10" help:"How many messages of each queue are looked at, at most 100."`
}

func (tailQueueCommand) Help() string {
	return `SQS knows no way to look without receiving. So each message is received, hidden from the workers for a moment, and made visible again at once: nothing is consumed, but its receive count (RECEIVES) rises by one with every look. A queue with a dead letter queue moves a message there after a number of receives, so do not look again and again. If this command is killed in the middle, or an answer of SQS is lost on its way, the messages are out of everybody's sight for ten seconds and come back by themselves: when fewer are shown than wait, look again then. Messages that a worker has taken are not shown, only counted.

Examples:

    runctl queue tail
    runctl queue tail wf2des --limit 50
    runctl queue tail --run 01980000-0000-7000-8000-000000000001
    runctl queue tail https://sqs.ap-northeast-1.amazonaws.com/123456789012/framerun-wf2des-dlq`
}

// queueView is one queue and what lies in it.
type queueView struct {
	Queue    string        `json:"queue"`
	URL      string        `json:"url"`
	Visible  int           `json:"visible"`  // waiting for a worker
	InFlight int           `json:"inFlight"` // taken by a worker
	Delayed  int           `json:"delayed"`
	Messages []messageView `json:"messages"`
}

type messageView struct {
	MessageID string          `json:"messageId"`
	SentAt    string          `json:"sentAt"`
	Receives  int             `json:"receives"`
	Kind      lifecycle.Kind  `json:"kind,omitzero"`
	RunID     string          `json:"runId,omitzero"`
	Stage     lifecycle.Stage `json:"stage,omitzero"`
	Attempt   int             `json:"attempt,omitzero"`
	Body      string          `json:"body"`
}

func (c tailQueueCommand) Run(ctx context.Context, s *hand) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if c.Limit < 1 || c.Limit > 100 {
		return usage("--limit must lie between 1 and 100")
	}
	client, urls, err := s.queues(ctx)
	if err != nil {
		return err
	}
	chosen, err := c.choose(urls)
	if err != nil {
		return err
	}
	var views []queueView
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		seen, err := jobs.Peek(ctx, client, chosen[name], c.Limit)
		if err != nil {
			return err
		}
		views = append(views, c.view(name, chosen[name], seen))
	}
	return s.show(list[queueView]{views}, func(w io.Writer) {
		for _, v := range views {
			v.tell(w)
		}
	})
}

// choose gives each queue that is looked at one name, also where all kinds of work share one.
func (c tailQueueCommand) choose(urls map[string]string) (map[string]string, error) {
	switch {
	case strings.Contains(c.Queue, "://"):
		return map[string]string{"queue": c.Queue}, nil
	case c.Queue != "" && urls[c.Queue] == "":
		return nil, usage("there is no queue %q; there are %s", c.Queue, strings.Join(slices.Sorted(maps.Keys(urls)), ", "))
	case c.Queue != "":
		return map[string]string{c.Queue: urls[c.Queue]}, nil
	}
	names := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(urls)) {
		names[urls[name]] = append(names[urls[name]], name)
	}
	chosen := map[string]string{}
	for url, name := range names {
		chosen[strings.Join(name, ", ")] = url
	}
	return chosen, nil
}

func (c tailQueueCommand) view(name, url string, p jobs.Peeked) queueView {
	v := queueView{Queue: name, URL: url, Visible: p.Visible, InFlight: p.InFlight, Delayed: p.Delayed, Messages: []messageView{}}
	for _, m := range p.Messages {
		one := messageView{MessageID: m.ID, SentAt: timestamp(m.SentAt), Receives: m.Receives, Body: m.Body}
		var job jobs.Message
		if json.Unmarshal([]byte(m.Body), &job) == nil {
			one.Kind, one.RunID, one.Stage, one.Attempt = job.Kind, job.Run().ID, job.Stage, job.Attempt
		}
		if c.Of == "" || one.RunID == c.Of {
			v.Messages = append(v.Messages, one)
		}
	}
	return v
}

func (v queueView) tell(w io.Writer) {
	fmt.Fprintf(w, "%s: about %d wait, %d are with a worker, %d are delayed\n", v.Queue, v.Visible, v.InFlight, v.Delayed)
	rows := make([][]string, len(v.Messages))
	for i, m := range v.Messages {
		what := clip(m.Body, 60)
		if m.RunID != "" {
			what = string(m.Kind) + " " + m.RunID
		}
		rows[i] = []string{m.SentAt, what, string(m.Stage), strconv.Itoa(m.Attempt), strconv.Itoa(m.Receives), m.MessageID}
	}
	if len(rows) > 0 {
		table(w, []string{"SENT", "RUN", "STAGE", "ATTEMPT", "RECEIVES", "MESSAGE"}, rows)
	}
	fmt.Fprintln(w)
}
