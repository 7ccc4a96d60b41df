package demo

import (
	"context"
	"fmt"
	"time"
)

func (r *run) collection() string {
	return fmt.Sprintf("/v1/projects/%d/%s", r.d.seed.ProjectID, r.kind)
}

// posted creates the run. An open run of an earlier demo in its way is cancelled first.
func (r *run) posted(ctx context.Context) error {
	a, err := r.post(ctx)
	if err != nil {
		return err
	}
	if a.status == 409 {
		if err := r.clear(ctx, a); err != nil {
			return err
		}
		if a, err = r.post(ctx); err != nil {
			return err
		}
	}
	return r.created(a)
}

// postedAtOnce creates the run where nothing may be in its way any more.
func (r *run) postedAtOnce(ctx context.Context) error {
	a, err := r.post(ctx)
	if err != nil {
		return err
	}
	return r.created(a)
}

func (r *run) post(ctx context.Context) (answer, error) {
	r.started = time.Now()
	return r.d.plugin.ask(ctx, "POST", r.collection(), r.draft)
}

// clear cancels the run that stands in the way, unless it is one of this telling: then it should not be there.
func (r *run) clear(ctx context.Context, refusal answer) error {
	p, err := refusal.refused(409, "open_run")
	if err != nil {
		return err
	}
	for _, ours := range r.d.runs {
		if ours.now.ID == p.ExistingID {
			return refusal.read(201, nil)
		}
	}
	a, err := r.d.plugin.ask(ctx, "POST", r.collection()+"/"+p.ExistingID+"/cancel", nil)
	if err != nil {
		return err
	}
	r.say("an earlier demo left run %s open on this node: cancelled", p.ExistingID)
	return a.read(200, nil)
}

func (r *run) created(a answer) error {
	if err := r.learn(a, 201); err != nil {
		return err
	}
	r.d.runs = append(r.d.runs, r)
	if at := a.header.Get("Location"); at == "" || at != r.now.Links["self"] {
		return surprise(a.asked, "Location and links.self alike", fmt.Sprintf("%q and %q", at, r.now.Links["self"]))
	}
	if r.kind == "wf2des" && (r.now.WFNodeID != r.frame.node() || r.now.TriggerSurface != "plugin") {
		return surprise(a.asked, fmt.Sprintf("node %s, triggered by plugin", r.frame.node()),
			fmt.Sprintf("%s, by %q", r.now.WFNodeID, r.now.TriggerSurface))
	}
	if a.header.Get("ETag") == "" || a.header.Get("Retry-After") == "" {
		return surprise(a.asked, "ETag and Retry-After", fmt.Sprint(a.header))
	}
	if r.oneOfMany {
		r.say("201 %s", r.now.ID)
		return nil
	}
	r.say("POST %s  %s", r.label(), r.source())
	r.say("201  run %s, %s", r.now.ID, r.now.state())
	return nil
}

// refusedFor expects 409 naming the run that is open on the same node.
func (r *run) refusedFor(open *run) step {
	return func(ctx context.Context) error {
		a, err := r.post(ctx)
		if err != nil {
			return err
		}
		p, err := a.refused(409, "open_run")
		if err != nil {
			return err
		}
		if at := a.header.Get("Location"); p.ExistingID != open.now.ID || at != open.now.Links["self"] {
			return surprise(a.asked, "the open run "+open.now.ID, p.ExistingID+" at "+at)
		}
		r.say("POST %s  %s", r.label(), r.source())
		r.say("409  open_run: %s", p.ExistingID)
		return nil
	}
}

// refusedAt expects 422 for the one member at pointer.
func (r *run) refusedAt(pointer string) step {
	return func(ctx context.Context) error {
		a, err := r.post(ctx)
		if err != nil {
			return err
		}
		p, err := a.refused(422, "invalid_field")
		if err != nil {
			return err
		}
		if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
			return surprise(a.asked, "one error at "+pointer, string(a.body))
		}
		r.say("POST %s  %.40q…, %d characters", r.label(), r.screen(), len([]rune(r.screen())))
		r.say("422  %s %s", p.Errors[0].Pointer, p.Errors[0].Detail)
		return nil
	}
}
