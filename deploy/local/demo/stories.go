package demo

import "context"

// stories are told in this order.
var stories = []struct {
	title string
	play  func(*demo, context.Context) error
}{
	{"A wireframe becomes a design, with the designer's word in between", (*demo).confirmed},
	{"A design becomes a wireframe, without asking", (*demo).autoConfirmed},
	{"The code of an imported page becomes a wireframe", (*demo).imported},
	{"The same frame is triggered twice", (*demo).duplicate},
	{"The designer does not like what was found", (*demo).rejected},
	{"The designer changes her mind, twice", (*demo).cancelled},
	{"The worker fails", (*demo).failed},
	{"A name that is too long", (*demo).refused},
	{"Five frames at once, and the plugin is closed meanwhile", (*demo).wholePage},
}

func (d *demo) confirmed(ctx context.Context) error {
	r := d.wf2des(d.frames.Confirmed, draft{"prompt": "カード型のレイアウトで。Keep the table's columns."})
	defer r.leave()
	return play(ctx, r.posted, r.queued("parse"), r.watched("awaiting_confirm"), r.decided("confirm", "assemble"),
		r.queued("assemble"), r.watched("completed"), r.progressSeen, r.unchanged, d.inInbox(r), r.fetched, r.placed, d.notInInbox(r),
		r.rated("adopted"), r.timeline("created", "parsed", "confirmed", "completed", "placed", "rated"))
}

func (d *demo) autoConfirmed(ctx context.Context) error {
	r := d.wf2des(d.frames.AutoConfirmed, draft{"edge": "des2wf", "autoConfirm": "auto_confirm"})
	defer r.leave()
	return play(ctx, r.posted, r.queued("parse"), r.watched("completed"), r.queuedInAll("parse"), r.fetched, r.placed, r.rated("fixed"))
}

func (d *demo) imported(ctx context.Context) error {
	r := d.code2wf(d.frames.Imported.FileKey, d.frames.Imported.Name)
	defer r.leave()
	return play(ctx, r.posted, r.queued("generate"), r.watched("completed"), r.queuedInAll("generate"), d.inInbox(r), r.fetched, r.placed,
		d.notInInbox(r))
}

// duplicate sends the twin's own name and the id in its other form: it is the node that counts, not how it is called.
func (d *demo) duplicate(ctx context.Context) error {
	first := d.wf2des(d.frames.Dashed, draft{})
	twin := d.wf2des(d.frames.DashedTwin, draft{"wfNodeId": d.frames.DashedTwin.node()})
	back := d.wf2des(d.frames.DashedTwin, draft{"edge": "des2wf"})
	return play(ctx, first.posted, twin.refusedFor(first), back.posted, first.cancelled, back.cancelled)
}

func (d *demo) rejected(ctx context.Context) error {
	r := d.wf2des(d.frames.Sublayer, draft{"placementTarget": d.frames.Dashed.NodeID})
	defer r.leave()
	return play(ctx, r.posted, r.queued("parse"), r.watched("awaiting_confirm"), r.decided("reject", "rejected"), r.queuedInAll("parse"))
}

func (d *demo) cancelled(ctx context.Context) error {
	first := d.wf2des(d.frames.Emoji, draft{})
	again := d.wf2des(d.frames.Emoji, draft{"prompt": "rounder"})
	return play(ctx, first.posted, first.queued("parse"), first.cancelled, again.postedAtOnce, again.cancelled)
}

func (d *demo) failed(ctx context.Context) error {
	design := d.wf2des(d.frames.Control, draft{"prompt": "fail: model_unavailable"})
	code := d.code2wf(d.frames.Imported.FileKey, "fail: source_too_large")
	defer design.leave()
	defer code.leave()
	return play(ctx,
		design.posted, design.watched("failed"), design.explained("The generation model is not available at the moment. Please try again later."),
		code.posted, code.watched("failed"), code.explained("The frame is too large to be generated in one run. Try a smaller part of it."))
}

func (d *demo) refused(ctx context.Context) error {
	return play(ctx, d.wf2des(d.frames.Long, draft{}).refusedAt("/screenId"))
}

// wholePage waits with GET and Prefer: wait instead of a stream: both ways have to work.
func (d *demo) wholePage(ctx context.Context) error {
	var runs []*run
	for _, f := range d.frames.Page {
		r := d.wf2des(f, draft{"autoConfirm": "auto_confirm"})
		r.oneOfMany = true
		runs = append(runs, r)
	}
	return play(ctx, each(runs, asStep((*run).posted)), each(runs, func(r *run) step { return r.queued("parse") }),
		each(runs, func(r *run) step { return r.awaited("completed") }), d.inInbox(runs...), each(runs, asStep((*run).placed)),
		d.notInInbox(runs...))
}

func asStep(do func(*run, context.Context) error) func(*run) step {
	return func(r *run) step { return func(ctx context.Context) error { return do(r, ctx) } }
}
