package main

import (
	"context"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

// list gives a page of a list. PostgreSQL says which runs are in it and in which versions, each time; those that are known in exactly that
// version are not read again.
func (h *hot) list(ctx context.Context, kind lifecycle.Kind, tenant lifecycle.Tenant, f store.Filter, after store.Position, limit int) ([]*view, error) {
	listed, err := h.store.ListVersions(ctx, kind, tenant, f, after, limit)
	if err != nil {
		return nil, err
	}
	views, unknown := h.recallAll(kind, tenant, listed)
	if len(unknown) == 0 {
		return views, nil
	}
	began := time.Now()
	runs, err := h.store.Runs(ctx, kind, unknown)
	if err != nil {
		return nil, err
	}
	if !fill(views, listed, h.shelve(tenant, runs, began)) { // a run has moved on meanwhile, and may be in this list no more
		return h.listWhole(ctx, kind, tenant, f, after, limit)
	}
	return views, nil
}

// recallAll gives the views that are known in the version that is listed, nil for the others, and the ids of these.
func (h *hot) recallAll(kind lifecycle.Kind, tenant lifecycle.Tenant, listed []store.Listed) (views []*view, unknown []string) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	views = make([]*view, len(listed))
	for i, l := range listed {
		for _, e := range h.runs[lifecycle.Ref{Kind: kind, ID: l.ID}] {
			if e.tenant == tenant && e.view != nil && e.view.run.UpdatedAt.Equal(l.UpdatedAt) {
				e.listed, views[i] = now, e.view
			}
		}
		if views[i] == nil {
			unknown = append(unknown, l.ID)
		}
	}
	return views, unknown
}

// shelve keeps runs that were read for a list, and gives their views by id.
func (h *hot) shelve(tenant lifecycle.Tenant, runs []lifecycle.Run, began time.Time) map[string]*view {
	h.mu.Lock()
	defer h.mu.Unlock()
	views := make(map[string]*view, len(runs))
	for _, run := range runs {
		if run.Tenant != tenant {
			continue
		}
		e := h.entry(run.Ref, tenant)
		e.listed = began
		views[run.ID] = h.learn(e, run, began, e.heeded)
	}
	return views
}

// fill puts the views in their places. It reports false when one is not there in the version that is listed.
func fill(views []*view, listed []store.Listed, found map[string]*view) bool {
	for i, l := range listed {
		if views[i] != nil {
			continue
		}
		v := found[l.ID]
		if v == nil || !v.run.UpdatedAt.Equal(l.UpdatedAt) {
			return false
		}
		views[i] = v
	}
	return true
}

// listWhole reads a page in one piece.
func (h *hot) listWhole(ctx context.Context, kind lifecycle.Kind, tenant lifecycle.Tenant, f store.Filter, after store.Position, limit int) ([]*view, error) {
	runs, err := h.store.List(ctx, kind, tenant, f, after, limit)
	views := make([]*view, len(runs))
	for i, run := range runs {
		views[i] = newView(run)
	}
	return views, err
}
