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
}
