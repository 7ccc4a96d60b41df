package main

import (
	"encoding/json/jsontext"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"framerun.dev/pkg/figma"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
	"framerun.dev/pkg/web"
)

const defaultLimit, maxLimit = 50, 100

// shared are the parameters that both kinds' lists take; wf2des runs have two more.
var shared = []string{"figmaFileKey", "status", "screenId", "materialized", "flagged", "createdAfter", "createdBefore", "limit", "cursor"}

var parameters = map[lifecycle.Kind][]string{
	lifecycle.WF2Des:  append([]string{"phase", "edge"}, shared...),
	lifecycle.Code2WF: shared,
}

// list answers with the project's runs, newest first. Where each page ends is told by a cursor that is bound to its filters.
func (s *server) list(kind lifecycle.Kind) web.Handler {
	return func(r *http.Request) (*web.Reply, error) {
		caller, err := web.Admit(r, s.people)
		if err != nil {
			return nil, err
		}
		query, err := web.Query(r, parameters[kind]...)
		if err != nil {
			return nil, err
		}
		filter, limit, after, err := readList(kind, r.URL.Path, query)
		if err != nil {
			return nil, err
		}
		views, err := s.hot.list(r.Context(), kind, caller.Tenant, filter, after, limit+1) // one more tells whether there is another page
		if err != nil {
			return nil, err
		}
		if len(views) == 0 { // an empty list is true only of a project that is there
			known, err := s.store.HasProject(r.Context(), caller.Tenant)
			if err == nil && !known {
				err = lifecycle.ErrNotFound
			}
			if err != nil {
				return nil, err
			}
		}
		return s.page(r, query, views, limit)
	}
}

// page is {items, nextCursor}, put together from runs that are JSON already. nextCursor is null on the last page.
func (s *server) page(r *http.Request, query url.Values, views []*view, limit int) (*web.Reply, error) {
	header, next := http.Header{"Cache-Control": {"private, no-cache"}}, "null"
	if more := len(views) > limit; more {
		views = views[:limit]
		last := views[limit-1].run
		cursor := writeCursor(r.URL.Path, query, store.Position{CreatedAt: last.CreatedAt, ID: last.ID})
		query.Set("cursor", cursor)
		header.Set("Link", "<"+r.URL.EscapedPath()+"?"+query.Encode()+`>; rel="next"`)
		next = `"` + cursor + `"` // base64url needs no escapes
	}
	items, size := make([]jsontext.Value, len(views)), len(`{"items":[],"nextCursor":}`)+len(next)
	for i, v := range views {
		var err error
		if items[i], err = v.body(s.progress.on(v.run)); err != nil {
			return nil, err
		}
		size += len(items[i]) + 1
	}
	body := append(make(jsontext.Value, 0, size), `{"items":[`...)
	for i, item := range items {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, item...)
	}
	body = append(body, `],"nextCursor":`+next+`}`...)
	return &web.Reply{Header: header, Body: body}, nil
}

// readList reads the filters. Errors: *web.MalformedError for a cursor that is none, *lifecycle.InvalidError for anything else.
func readList(kind lifecycle.Kind, path string, q url.Values) (store.Filter, int, store.Position, error) {
	p := params{query: q}
	f := store.Filter{
		FigmaFileKey:  p.text("figmaFileKey", figma.FileKey),
		Status:        oneOf(&p, "status", statuses[kind]...),
		Phase:         oneOf(&p, "phase", lifecycle.PhaseParse, lifecycle.PhaseAwaitingConfirm, lifecycle.PhaseAssemble),
		Edge:          oneOf(&p, "edge", lifecycle.EdgeWF2Des, lifecycle.EdgeDes2WF),
		ScreenID:      p.text("screenId", func(s string) (string, error) { return s, nil }),
		Materialized:  p.yes("materialized"),
		Flagged:       p.yes("flagged"),
		CreatedAfter:  p.time("createdAfter"),
		CreatedBefore: p.time("createdBefore"),
	}
	limit := p.limit()
	if err := p.fields.Err(); err != nil {
		return f, 0, store.Position{}, err
	}
	after, err := readCursor(path, q)
	return f, limit, after, err
}

var statuses = map[lifecycle.Kind][]lifecycle.Status{
	lifecycle.WF2Des: {lifecycle.StatusProcessing, lifecycle.StatusCompleted, lifecycle.StatusFailed,
		lifecycle.StatusRejected, lifecycle.StatusCancelled},
	lifecycle.Code2WF: {lifecycle.StatusProcessing, lifecycle.StatusCompleted, lifecycle.StatusFailed},
}

// params reads parameters and remembers every problem. A parameter that is present is never ignored, not even an empty one.
type params struct {
	query  url.Values
	fields web.Fields
}

func (p *params) text(name string, canonical func(string) (string, error)) string {
	if !p.query.Has(name) {
		return ""
	}
	raw := p.query.Get(name)
	if p.fields.Text(name, &raw, true, 255) == "" {
		return ""
	}
	text, err := canonical(raw)
	if err != nil {
		p.fields.Refuse(name, err.Error())
	}
	return text
}

func oneOf[T ~string](p *params, name string, words ...T) (none T) {
	if !p.query.Has(name) {
		return none
	}
	raw := p.query.Get(name)
	return web.Word(&p.fields, name, &raw, none, words...)
}

func (p *params) yes(name string) *bool {
	switch word := oneOf(p, name, "true", "false"); word {
	case "true", "false":
		return new(word == "true")
	}
	return nil
}

func (p *params) time(name string) time.Time {
	if !p.query.Has(name) {
		return time.Time{}
	}
	text := p.query.Get(name)
	t, err := time.Parse(time.RFC3339Nano, text)
	if t = t.UTC(); err != nil || strings.Contains(text, ",") || !ordinary(t) { // an offset may lead out of the years that the text names
		p.fields.Refuse(name, "must be a time like 2026-01-31T08:30:00Z; a plus sign in a query string is written %2B")
		return time.Time{}
	}
	if t.IsZero() {
		t = t.Add(time.Nanosecond) // zero means that there is no filter
	}
	return t
}

// ordinary times are those of the years that RFC 3339 can write; PostgreSQL takes them all.
func ordinary(t time.Time) bool { return t.Year() >= 1 && t.Year() <= 9999 }

func (p *params) limit() int {
	if !p.query.Has("limit") {
		return defaultLimit
	}
	raw := p.query.Get("limit")
	n, err := strconv.Atoi(raw)
	if err != nil || n < 1 || n > maxLimit || strconv.Itoa(n) != raw {
		p.fields.Refuse("limit", "must be a whole number between 1 and 100")
	}
	return n
}
