package main

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"uuid"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"framerun.dev/pkg/store"
)

// follow is the target of a page's Link, checked against its nextCursor; "" on the last page.
func (q *query) follow(t *testing.T, asked string, page servicetest.Reply) string {
	t.Helper()
	cursor, more := page.JSON(t)["nextCursor"].(string)
	link := page.Header.Get("Link")
	if !more {
		if link != "" {
			t.Errorf("the last page has the Link %s", link)
		}
		return ""
	}
	target, isNext := strings.CutSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
	got, err := url.Parse(target)
	if err != nil || !isNext {
		t.Fatalf("Link is %q", link)
	}
	want, err := url.Parse(asked)
	if err != nil {
		t.Fatal(err)
	}
	parameters := want.Query()
	parameters.Set("cursor", cursor)
	if got.Path != want.Path || !cmp.Equal(got.Query(), parameters) {
		t.Errorf("the Link of %s with the cursor %s is %s", asked, cursor, target)
	}
	return target
}

// Pages follow one another, lose nothing and show nothing twice while runs come, move on and go.
func TestPagesWhileRunsComeAndMoveOn(t *testing.T) {
	t.Parallel()
	q := open(t)
	for range 11 {
		q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	}
	for _, limit := range []int{1, 4, 11, 100} {
		want := ids(t, q.get(t, wf2des+"?limit=100"))
		got := []string{}
		next := fmt.Sprintf("%s?figmaFileKey=itMrdXTfcIHTHbSGK0Ivox&createdAfter=2020-01-01T00:00:00%%2B09:00&limit=%d", wf2des, limit)
		for next != "" {
			page := q.get(t, next)
			listed := ids(t, page)
			got = append(got, listed...)
			if rest := len(want) - len(got); len(listed) > limit || rest > 0 && len(listed) < limit || rest < 0 {
				t.Fatalf("limit %d: a page holds %d runs, %d remain", limit, len(listed), rest)
			}
			next = q.follow(t, next, page)
			q.In(t, lifecycle.WF2Des, lifecycle.Parsing) // newer than what is asked for
			run, err := q.Store.RunOfAnyTenant(t.Context(), lifecycle.Ref{Kind: lifecycle.WF2Des, ID: listed[0]})
			if err != nil {
				t.Fatal(err)
			}
			if run.State == lifecycle.Parsing {
				q.Step(t, run, lifecycle.Parsed)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, diff)
		}
	}
}

// Runs of one microsecond are told apart by their ids.
func TestPagesOfOneMoment(t *testing.T) {
	t.Parallel()
	q := open(t)
	for range 5 {
		q.In(t, lifecycle.Code2WF, lifecycle.Processing)
	}
	q.SQL.MustExec(`UPDATE code2wf SET created_at = '2026-01-31T08:30:00.123456Z'`)
	want := ids(t, q.get(t, code2wf))
	var got []string
	for next := code2wf + "?limit=2"; next != ""; {
		page := q.get(t, next)
		got, next = append(got, ids(t, page)...), q.follow(t, next, page)
	}
	if len(got) != 5 || !slices.Equal(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
}

func TestDefaultLimitIsFifty(t *testing.T) {
	t.Parallel()
	q := open(t)
	for range 51 {
		q.In(t, lifecycle.Code2WF, lifecycle.Processing)
	}
	page := q.get(t, code2wf)
	if n := len(ids(t, page)); n != 50 {
		t.Fatalf("a page holds %d runs", n)
	}
	last := q.get(t, q.follow(t, code2wf, page))
	if n := len(ids(t, last)); n != 1 || last.Header.Get("Link") != "" {
		t.Errorf("the second page holds %d runs, and its Link is %q", n, last.Header.Get("Link"))
	}
}

// A cursor belongs to its filters, but for the size of the pages; whatever else is made up is refused and never reaches PostgreSQL.
func TestCursorsAreBoundToTheirFilters(t *testing.T) {
	t.Parallel()
	q := open(t)
	for range 3 {
		q.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	}
	const filters = "status=processing&edge=wf2des"
	cursor := q.get(t, wf2des+"?limit=1&"+filters).JSON(t)["nextCursor"].(string)
	for _, good := range []string{filters + "&limit=2", "edge=wf2des&status=processing"} {
		if n := len(ids(t, q.get(t, wf2des+"?"+good+"&cursor="+cursor))); n != 2 {
			t.Errorf("%s goes on with %d runs", good, n)
		}
	}
	for _, bad := range []string{"", "status=processing", "status=completed&edge=wf2des", filters + "&phase=parse"} {
		problem := q.Send(t, "GET", wf2des+"?"+bad+"&cursor="+cursor, q.Owner, "").Refused(t, 400, "malformed_request")
		if got := servicetest.Faults(problem); !slices.Equal(got, []string{"cursor"}) {
			t.Errorf("%s: the faults are at %q", bad, got)
		}
	}
	q.Send(t, "GET", "/v1/projects/2/wf2des?"+filters+"&cursor="+cursor, q.OtherProject, "").Refused(t, 400, "malformed_request")
	plain := func(micros int64, id uuid.UUID) string {
		raw := binary.BigEndian.AppendUint64(listDigest(wf2des, url.Values{}), uint64(micros))
		return base64.RawURLEncoding.EncodeToString(append(raw, id[:]...))
	}
	for _, micros := range []int64{-1 << 63, -62_167_219_200_000_001, 253_402_300_800_000_000, 1<<63 - 1} {
		q.Send(t, "GET", wf2des+"?cursor="+plain(micros, uuid.NewV7()), q.Owner, "").Refused(t, 400, "malformed_request")
	}
	q.get(t, wf2des+"?cursor="+plain(time.Now().UnixMicro(), uuid.UUID{}))
	for _, bad := range []string{cursor + "=", cursor[1:], cursor + "AA", strings.ToUpper(cursor), "%20" + cursor} {
		q.Send(t, "GET", wf2des+"?"+filters+"&cursor="+bad, q.Owner, "").Refused(t, 400, "malformed_request")
	}
}

// The position of a run comes back from a cursor as it went in.
func TestCursorRoundTrip(t *testing.T) {
	t.Parallel()
	want := store.Position{CreatedAt: time.Date(2026, 1, 31, 8, 30, 0, 123456000, time.UTC), ID: uuid.NewV7().String()}
	parameters := url.Values{"status": {"failed"}, "limit": {"3"}}
	parameters.Set("cursor", writeCursor(wf2des, parameters, want))
	if got, err := readCursor(wf2des, parameters); err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}
