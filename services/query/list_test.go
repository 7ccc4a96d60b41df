package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
)

const (
	wf2des  = "/v1/projects/1/wf2des"
	code2wf = "/v1/projects/1/code2wf"
)

// ids are the runs of a page, in its order.
func ids(t *testing.T, page servicetest.Reply) []string {
	t.Helper()
	listed := []string{}
	for _, item := range page.JSON(t)["items"].([]any) {
		listed = append(listed, item.(map[string]any)["id"].(string))
	}
	return listed
}

// stamp writes a time for a query string.
func stamp(at time.Time) string { return url.QueryEscape(at.Format(time.RFC3339Nano)) }

// population makes runs in every state, of several files, screens and edges, some placed, flagged or deleted.
func (q *query) population(t *testing.T, kind lifecycle.Kind) []lifecycle.Run {
	t.Helper()
	var all []lifecycle.Run
	for i, state := range slices.Concat(servicetest.StatesOf(kind), servicetest.StatesOf(kind)) {
		run := q.In(t, kind, state, func(r *lifecycle.Run) {
			r.FigmaFileKey, r.ScreenID = fmt.Sprint("file", i%2), fmt.Sprint("screen ", i%3)
			if kind == lifecycle.WF2Des && i%4 == 1 {
				r.Edge = lifecycle.EdgeDes2WF
			}
		})
		all = append(all, run)
	}
	for i, change := range []string{`materialized_at = now()`, `flag_count = 0`, `flag_count = NULL`} {
		run := q.In(t, kind, lifecycle.Completed, func(r *lifecycle.Run) { r.FigmaFileKey = fmt.Sprint("file", i%2) })
		q.SQL.MustExec(fmt.Sprintf(`UPDATE %s SET %s WHERE id = $1`, kind, change), run.ID)
		all = append(all, run)
	}
	deleted := q.In(t, kind, lifecycle.Completed)
	q.Step(t, deleted, lifecycle.Delete)
	for i, run := range all {
		now, err := q.Store.RunOfAnyTenant(t.Context(), run.Ref)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = now
	}
	slices.Reverse(all) // newest first
	return all
}

// Every filter, and several at once, against what the runs are.
func TestListFilters(t *testing.T) {
	t.Parallel()
	q := open(t)
	for _, kind := range lifecycle.Kinds {
		all := q.population(t, kind)
		middle := all[len(all)/2].CreatedAt
		filters := map[string]func(lifecycle.Run) bool{
			"":                               func(lifecycle.Run) bool { return true },
			"limit=100":                      func(lifecycle.Run) bool { return true },
			"figmaFileKey=file1":             func(r lifecycle.Run) bool { return r.FigmaFileKey == "file1" },
			"figmaFileKey=FILE1":             func(lifecycle.Run) bool { return false },
			"screenId=screen%202":            func(r lifecycle.Run) bool { return r.ScreenID == "screen 2" },
			"screenId=screen+2":              func(r lifecycle.Run) bool { return r.ScreenID == "screen 2" },
			"status=processing":              func(r lifecycle.Run) bool { return !r.Ended() },
			"status=completed":               func(r lifecycle.Run) bool { return r.State == lifecycle.Completed },
			"status=failed":                  func(r lifecycle.Run) bool { return r.State == lifecycle.Failed },
			"materialized=false":             func(r lifecycle.Run) bool { return r.State == lifecycle.Completed && r.MaterializedAt == nil },
			"materialized=true":              func(r lifecycle.Run) bool { return r.MaterializedAt != nil },
			"flagged=true":                   func(r lifecycle.Run) bool { return r.FlagCount != nil && *r.FlagCount > 0 },
			"flagged=false":                  func(r lifecycle.Run) bool { return r.FlagCount == nil || *r.FlagCount == 0 },
			"createdAfter=" + stamp(middle):  func(r lifecycle.Run) bool { return r.CreatedAt.After(middle) },
			"createdBefore=" + stamp(middle): func(r lifecycle.Run) bool { return r.CreatedAt.Before(middle) },
			"createdBefore=" + stamp(middle.In(time.FixedZone("JST", 9*3600))):  func(r lifecycle.Run) bool { return r.CreatedAt.Before(middle) },
			"createdBefore=0001-01-01T00:00:00Z":                                func(lifecycle.Run) bool { return false },
			"createdAfter=9999-12-31T23:59:59.999999999Z":                       func(lifecycle.Run) bool { return false },
			"createdAfter=" + stamp(middle) + "&createdBefore=" + stamp(middle): func(lifecycle.Run) bool { return false },
			"figmaFileKey=file1&status=completed&materialized=false&flagged=true&&": func(r lifecycle.Run) bool {
				return r.FigmaFileKey == "file1" && r.State == lifecycle.Completed && r.MaterializedAt == nil && r.FlagCount != nil && *r.FlagCount > 0
			},
		}
		if kind == lifecycle.WF2Des {
			for name, holds := range map[string]func(lifecycle.Run) bool{
				"status=rejected":        func(r lifecycle.Run) bool { return r.State == lifecycle.Rejected },
				"status=cancelled":       func(r lifecycle.Run) bool { return r.State == lifecycle.Cancelled },
				"phase=parse":            func(r lifecycle.Run) bool { return r.State == lifecycle.Parsing },
				"phase=awaiting_confirm": func(r lifecycle.Run) bool { return r.State == lifecycle.AwaitingConfirm },
				"phase=assemble":         func(r lifecycle.Run) bool { return r.State == lifecycle.Assembling },
				"edge=wf2des":            func(r lifecycle.Run) bool { return r.Edge == lifecycle.EdgeWF2Des },
				"edge=des2wf":            func(r lifecycle.Run) bool { return r.Edge == lifecycle.EdgeDes2WF },
			} {
				filters[name] = holds
			}
		}
		for raw, holds := range filters {
			want := []string{}
			for _, run := range all {
				if holds(run) {
					want = append(want, run.ID)
				}
			}
			page := q.get(t, "/v1/projects/1/"+string(kind)+"?"+raw)
			if diff := cmp.Diff(want, ids(t, page)); diff != "" {
				t.Errorf("%s?%s (-want +got):\n%s", kind, raw, diff)
			}
			if next, there := page.JSON(t)["nextCursor"]; !there || next != nil || page.Header.Get("Link") != "" {
				t.Errorf("%s?%s is a whole list, with nextCursor %v and Link %q", kind, raw, next, page.Header.Get("Link"))
			}
		}
	}
}

// A page is {items, nextCursor}; its items are what GET of each shows, and HEAD tells the same without a body.
func TestListItemsAreWholeRuns(t *testing.T) {
	t.Parallel()
	q := open(t)
	empty := q.get(t, code2wf)
	if empty.Body != `{"items":[],"nextCursor":null}` {
		t.Errorf("an empty list is %s", empty.Body)
	}
	for _, state := range servicetest.StatesOf(lifecycle.WF2Des) {
		run := q.In(t, lifecycle.WF2Des, state)
		page := q.get(t, wf2des+"?limit=1&status="+string(state.Status()))
		whole := q.get(t, path(run))
		if diff := cmp.Diff(whole.JSON(t), page.JSON(t)["items"].([]any)[0]); diff != "" {
			t.Errorf("an item differs from the run: %s", diff)
		}
	}
	page, head := q.get(t, wf2des), q.Send(t, "HEAD", wf2des, q.Owner, "")
	if head.Status != 200 || head.Body != "" || head.Header.Get("Content-Length") != page.Header.Get("Content-Length") {
		t.Errorf("HEAD: %d %v", head.Status, head.Header)
	}
	if got := page.Header.Get("Cache-Control"); got != "private, no-cache" {
		t.Errorf("Cache-Control is %q", got)
	}
}

// The unplaced inbox: finished runs that nobody has placed, until they are placed or deleted.
func TestUnplacedInbox(t *testing.T) {
	t.Parallel()
	q := open(t)
	const inbox = wf2des + "?materialized=false"
	q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	q.In(t, lifecycle.WF2Des, lifecycle.Failed)
	first, second := q.In(t, lifecycle.WF2Des, lifecycle.Completed), q.In(t, lifecycle.WF2Des, lifecycle.Completed)
	if got := ids(t, q.get(t, inbox)); !slices.Equal(got, []string{second.ID, first.ID}) {
		t.Errorf("the inbox holds %v", got)
	}
	q.Step(t, first, lifecycle.Place)
	q.Step(t, second, lifecycle.Delete)
	if got := ids(t, q.get(t, inbox)); len(got) != 0 {
		t.Errorf("placed and deleted runs are still there: %v", got)
	}
}

// A list shows the caller's project alone.
func TestListIsFenced(t *testing.T) {
	t.Parallel()
	q := open(t)
	own := q.In(t, lifecycle.WF2Des, lifecycle.Completed)
	theirs := q.In(t, lifecycle.WF2Des, lifecycle.Completed, func(r *lifecycle.Run) {
		r.Tenant = lifecycle.Tenant{OrganizationID: platform.OrganizationID, ProjectID: platform.OtherProjectID}
	})
	if got := ids(t, q.get(t, wf2des)); !slices.Equal(got, []string{own.ID}) {
		t.Errorf("project 1 holds %v", got)
	}
	if got := ids(t, q.Send(t, "GET", "/v1/projects/2/wf2des", q.OtherProject, "")); !slices.Equal(got, []string{theirs.ID}) {
		t.Errorf("project 2 holds %v", got)
	}
	if got := ids(t, q.Send(t, "GET", "/v1/projects/3/wf2des", q.OtherOrganization, "")); len(got) != 0 {
		t.Errorf("project 3 holds %v", got)
	}
}

// long is longer than any text that a list is filtered by.
var long = strings.Repeat("x", 256)

// badLists are query strings that are refused, and where.
var badLists = map[string]struct {
	status int
	at     []string
}{
	"state=parsing":                             {400, []string{"state"}},
	"Status=completed":                          {400, []string{"Status"}},
	"figma_file_key=a":                          {400, []string{"figma_file_key"}},
	"sort=score":                                {400, []string{"sort"}},
	"status=failed&status=completed":            {400, []string{"status"}},
	"status=failed&%73tatus=completed":          {400, []string{"%73tatus"}},
	"limit=1&limit=1":                           {400, []string{"limit"}},
	"status=failed;limit=1":                     {400, []string{"status"}},
	"screenId=a;b":                              {400, []string{"screenId"}},
	"screenId=%zz":                              {400, []string{"screenId"}},
	"screenId=%":                                {400, []string{"screenId"}},
	"screenId=%ff":                              {400, []string{"screenId"}},
	"screenId=%00":                              {400, []string{"screenId"}},
	"cursor=":                                   {400, []string{"cursor"}},
	"cursor=abc":                                {400, []string{"cursor"}},
	"cursor=" + long:                            {400, []string{"cursor"}},
	"status=":                                   {422, []string{"status"}},
	"status=0":                                  {422, []string{"status"}},
	"status=Completed":                          {422, []string{"status"}},
	"status=completed,failed":                   {422, []string{"status"}},
	"phase=assembling":                          {422, []string{"phase"}},
	"edge=code2wf":                              {422, []string{"edge"}},
	"figmaFileKey=":                             {422, []string{"figmaFileKey"}},
	"figmaFileKey=%20":                          {422, []string{"figmaFileKey"}},
	"figmaFileKey=" + long:                      {422, []string{"figmaFileKey"}},
	"screenId=":                                 {422, []string{"screenId"}},
	"screenId=" + long:                          {422, []string{"screenId"}},
	"materialized":                              {422, []string{"materialized"}},
	"materialized=0":                            {422, []string{"materialized"}},
	"materialized=False":                        {422, []string{"materialized"}},
	"flagged=yes":                               {422, []string{"flagged"}},
	"createdAfter=":                             {422, []string{"createdAfter"}},
	"createdAfter=yesterday":                    {422, []string{"createdAfter"}},
	"createdAfter=2026-01-31":                   {422, []string{"createdAfter"}},
	"createdAfter=2026-01-31T08:30:00":          {422, []string{"createdAfter"}},
	"createdAfter=2026-01-31T08:30:00+09:00":    {422, []string{"createdAfter"}}, // the plus is a space
	"createdBefore=0000-01-01T00:00:00Z":        {422, []string{"createdBefore"}},
	"createdBefore=2026-02-30T00:00:00Z":        {422, []string{"createdBefore"}},
	"createdBefore=99999-01-01T00:00:00Z":       {422, []string{"createdBefore"}},
	"createdAfter=9999-12-31T23:59:59-23:59":    {422, []string{"createdAfter"}}, // in UTC the year is 10000
	"createdBefore=0001-01-01T00:00:00%2B01:00": {422, []string{"createdBefore"}},
	"limit=0":                                   {422, []string{"limit"}},
	"limit=101":                                 {422, []string{"limit"}},
	"limit=-1":                                  {422, []string{"limit"}},
	"limit=":                                    {422, []string{"limit"}},
	"limit=1.0":                                 {422, []string{"limit"}},
	"limit=01":                                  {422, []string{"limit"}},
	"limit=%2B1":                                {422, []string{"limit"}},
	"limit=1e1":                                 {422, []string{"limit"}},
	"limit=99999999999999999999":                {422, []string{"limit"}},
	"limit=0&status=x&flagged=x&figmaFileKey":   {422, []string{"figmaFileKey", "status", "flagged", "limit"}},
}

// What cannot be read is 400 and what makes no sense 422, both at the parameter; no filter vanishes.
func TestListParametersThatAreRefused(t *testing.T) {
	t.Parallel()
	q := open(t)
	q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	for raw, want := range badLists {
		code := map[int]string{400: "malformed_request", 422: "invalid_field"}[want.status]
		problem := q.Send(t, "GET", wf2des+"?"+raw, q.Owner, "").Refused(t, want.status, code)
		if got := servicetest.Faults(problem); !slices.Equal(got, want.at) {
			t.Errorf("%.60s: the faults are at %q; want %q", raw, got, want.at)
		}
	}
	link := url.QueryEscape("https://www.figma.com/design/8o2StT4oizontcC4m5tfLA/Title?node-id=12-34")
	problem := q.Send(t, "GET", wf2des+"?figmaFileKey="+link, q.Owner, "").Refused(t, 422, "invalid_field")
	if said := fmt.Sprint(problem["errors"]); !strings.Contains(said, "8o2StT4oizontcC4m5tfLA") {
		t.Errorf("a pasted link is answered with %s", said)
	}
	for _, raw := range []string{"phase=parse", "edge=wf2des"} {
		q.Send(t, "GET", code2wf+"?"+raw, q.Owner, "").Refused(t, 400, "malformed_request")
	}
	for _, raw := range []string{"status=rejected", "status=cancelled"} { // a code2wf run is never so
		q.Send(t, "GET", code2wf+"?"+raw, q.Owner, "").Refused(t, 422, "invalid_field")
	}
}
