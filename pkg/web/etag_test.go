package web_test

import (
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
	newer := at.Add(time.Second)
	for _, c := range []struct {
		header string
		want   time.Time
		ok     bool
	}{
		{web.ETag(runID, at), at, true},
		{web.ETag(runID, at) + ", W/" + web.ETag(runID, newer), newer, true},
		{web.ETag(runID, newer) + ", " + web.ETag(runID, at), newer, true},
		{web.ETag("another", newer), time.Time{}, false},
		{`"` + runID + `.+5"`, time.Time{}, false},
		{`"` + runID + `."`, time.Time{}, false},
		{`"` + runID + `.99999999999999999999"`, time.Time{}, false},
		{`*`, time.Time{}, false},
		{``, time.Time{}, false},
	} {
		r := &http.Request{Header: http.Header{"If-None-Match": {c.header}}}
		if got, ok := web.NewestSeen(r, runID); ok != c.ok || !got.Equal(c.want) {
			t.Errorf("%s: got %s %t", c.header, got, ok)
		}
	}
}
