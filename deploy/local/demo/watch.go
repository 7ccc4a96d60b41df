package demo

import (
	"context"
	"encoding/json/v2"
	"fmt"
)

// watched follows the run's stream until the run is in state, and tells each change and all progress on the way.
func (r *run) watched(state string) step {
	return func(ctx context.Context) error {
		if r.stream == nil {
			s, err := r.listen(ctx)
			if err != nil {
				return err
			}
			r.stream = s
		}
		for r.now.state() != state {
			if r.now.Done {
				return r.endedOtherwise(state)
			}
			e, err := r.stream.next()
			if err != nil {
				return fmt.Errorf("waiting for run %s to be %s: %w", r.now.ID, state, err)
			}
			if err := r.hear(e); err != nil {
				return err
			}
		}
		return nil
	}
}

// leave hangs up.
func (r *run) leave() {
	if r.stream != nil {
		r.stream.body.Close()
	}
}

func (r *run) endedOtherwise(state string) error {
	came := r.now.state()
	if r.now.ErrorMessage != nil {
		came += fmt.Sprintf(" (%s)", *r.now.ErrorMessage)
	}
	return surprise("run "+r.now.ID, state, came)
}

func (r *run) hear(e event) error {
	switch e.name {
	case "run":
		return r.hearRun(e.data)
	case "step":
		return r.hearStep(e.data)
	case "progress":
		return r.hearProgress(e.data)
	}
	return surprise("stream of run "+r.now.ID, "run, step or progress", e.name)
}

// hearStep tells who led the run on; where to, the run that follows says.
func (r *run) hearStep(data string) error {
	var s struct {
		What string `json:"what"`
		By   string `json:"by"`
	}
	if err := json.Unmarshal([]byte(data), &s); err != nil {
		return fmt.Errorf("stream of run %s: %w", r.now.ID, err)
	}
	if s.What == "" || s.By == "" {
		return surprise("stream of run "+r.now.ID, "a step that says what happened", data)
	}
	r.say("     %s by the %s", s.What, s.By)
	return nil
}

func (r *run) hearRun(data string) error {
	var now resource
	if err := json.Unmarshal([]byte(data), &now); err != nil {
		return fmt.Errorf("stream of run %s: %w", r.now.ID, err)
	}
	was := r.now.state()
	if err := r.update(now, "stream of run "+r.now.ID); err != nil {
		return err
	}
	if now.state() != was {
		r.say("     %s → %s", was, now.state())
	}
	return nil
}

func (r *run) hearProgress(data string) error {
	var p struct {
		Percent *float64 `json:"percent"`
		Message *string  `json:"message"`
	}
	if err := json.Unmarshal([]byte(data), &p); err != nil {
		return fmt.Errorf("stream of run %s: %w", r.now.ID, err)
	}
	if p.Percent == nil || p.Message == nil {
		return surprise("stream of run "+r.now.ID, "progress with percent and message", data)
	}
	r.heard++
	r.say("     %s  %3.0f %%  %s", r.now.state(), *p.Percent, *p.Message)
	return nil
}

// progressSeen expects that the worker was heard on its way: without it a designer looks at a spinner.
func (r *run) progressSeen(context.Context) error {
	if r.heard == 0 {
		return surprise("stream of run "+r.now.ID, "progress", "none")
	}
	return nil
}

// awaited waits with GET and Prefer: wait until the run is in state.
func (r *run) awaited(state string) step {
	return func(ctx context.Context) error {
		for r.now.state() != state {
			if r.now.Done {
				return r.endedOtherwise(state)
			}
			a, err := r.d.plugin.ask(ctx, "GET", r.now.Links["self"], nil, "Prefer", "wait=20", "If-None-Match", r.etag)
			if err != nil {
				return err
			}
			if a.status == 304 {
				continue
			}
			if err := r.learn(a, 200); err != nil {
				return err
			}
		}
		r.say("%s", r.now.state())
		return nil
	}
}

// unchanged asks again with the newest ETag: nothing has changed, so nothing is sent.
func (r *run) unchanged(ctx context.Context) error {
	a, err := r.d.plugin.ask(ctx, "GET", r.now.Links["self"], nil)
	if err != nil {
		return err
	}
	if err := r.learn(a, 200); err != nil {
		return err
	}
	if a, err = r.d.plugin.ask(ctx, "GET", r.now.Links["self"], nil, "If-None-Match", r.etag); err != nil {
		return err
	}
	if a.status != 304 || len(a.body) > 0 || a.header.Get("ETag") != r.etag {
		return surprise(a.asked, "304 with ETag "+r.etag, fmt.Sprintf("%d with %s and %d bytes", a.status, a.header.Get("ETag"), len(a.body)))
	}
	r.say("304  unchanged since %s", r.etag)
	return nil
}
