package web_test

import (
	"math"
	"net/http"
	"testing"
	"time"

	"framerun.dev/pkg/web"
)

func TestUnchangedReadsIfNoneMatchAsRFC9110Wants(t *testing.T) {
	for _, c := range []struct {
		header []string
		want   bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{`"a"`}, true},
		{[]string{`W/"a"`}, true},
		{[]string{` "b" , "a" `}, true},
		{[]string{`"b",W/"c"`, `"a"`}, true},
		{[]string{`,,"a",`}, true},
		{[]string{`"x,y", "a"`}, true},
		{[]string{`*`}, true},
		{[]string{` * `}, true},
		{[]string{`"*"`}, false},
		{[]string{`a`}, false},
		{[]string{`"A"`}, false},
		{[]string{`"a`}, false},
		{[]string{`w/"a"`}, false},
		{[]string{`b, "a"`}, false},
		{[]string{`"ab", "ba"`}, false},
	} {
		r := &http.Request{Header: http.Header{"If-None-Match": c.header}}
		if got := web.Unchanged(r, `"a"`); got != c.want {
			t.Errorf("%q: got %t", c.header, got)
		}
	}
}

func TestETagCarriesTheVersionToTheMicrosecond(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 123456000, time.UTC)
	if web.ETag(runID, at) == web.ETag(runID, at.Add(time.Microsecond)) {
		t.Error("two versions share a tag")
	}
	if web.ETag(runID, at) != web.ETag(runID, at.In(time.FixedZone("JST", 9*60*60))) {
		t.Error("the tag depends on the time zone")
	}
}

// Catches a version that is missed among others, read out of another run's tag, or made of what is no tag.
func TestNewestSeenIsTheLatestVersionThatTheClientShows(t *testing.T) {
	const other = "01890a5d-ac96-774b-bcce-b302099a8058"
	at := func(micros int64) time.Time { return time.UnixMicro(micros) }
	tag := func(micros int64) string { return web.ETag(runID, at(micros)) }
	for _, c := range []struct {
		about  string
		header []string
		want   time.Time
	}{
		{"no header", nil, time.Time{}},
		{"an empty one", []string{""}, time.Time{}},
		{"one", []string{tag(7)}, at(7)},
		{"a weak one", []string{"W/" + tag(7)}, at(7)},
		{"the last of several", []string{tag(5) + ", " + tag(6) + ",W/" + tag(7)}, at(7)},
		{"the first of several", []string{tag(7) + ", " + tag(5), tag(6)}, at(7)},
		{"in the second header", []string{tag(5), tag(7)}, at(7)},
		{"beside others' and foreign ones", []string{`"x", ` + web.ETag(other, at(9)) + `, "` + runID + `", ` + tag(7)}, at(7)},
		{"another run's alone", []string{web.ETag(other, at(9))}, time.Time{}},
		{"a run whose id begins alike", []string{`"` + runID + `0.9"`}, time.Time{}},
		{"after what is no tag", []string{`garbage, ` + tag(7)}, time.Time{}},
		{"before what is no tag", []string{tag(7) + `, garbage`}, at(7)},
		{"no number", []string{`"` + runID + `.x"`, `"` + runID + `."`, `"` + runID + `.1.5"`, `"` + runID + `. 7"`, `"` + runID + `.0x7"`}, time.Time{}},
		{"without its end", []string{`"` + runID + `.7`}, time.Time{}},
		{"beyond all numbers", []string{`"` + runID + `.9223372036854775808"`}, time.Time{}},
		{"beyond all numbers, beside one", []string{`"` + runID + `.99999999999999999999"`, tag(7)}, at(7)},
		{"the greatest number", []string{tag(math.MaxInt64)}, at(math.MaxInt64)},
		{"before 1970", []string{tag(-1)}, at(-1)},
		{"before 1970, beside one", []string{tag(-1), tag(7)}, at(7)},
		{"anything", []string{"*"}, time.Time{}},
		{"anything, among others", []string{"*, " + tag(7)}, time.Time{}},
	} {
		r := &http.Request{Header: http.Header{"If-None-Match": c.header}}
		if got := web.NewestSeen(r, runID); !got.Equal(c.want) {
			t.Errorf("%s: %q shows %s; want %s", c.about, c.header, got, c.want)
		}
	}
}
