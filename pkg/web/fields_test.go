package web_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/web"
)

// refusals lists what f holds, as "field: reason".
func refusals(f *web.Fields) []string {
	var found []string
	if joined, ok := f.Err().(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			if e, ok := errors.AsType[*lifecycle.InvalidError](err); ok {
				found = append(found, e.Error())
			}
		}
	}
	return found
}

func TestWordTakesItsWordsOnly(t *testing.T) {
	var f web.Fields
	text := func(s string) *string { return &s }
	got := []lifecycle.Edge{
		web.Word(&f, "/a", nil, lifecycle.EdgeWF2Des, lifecycle.EdgeWF2Des, lifecycle.EdgeDes2WF),
		web.Word(&f, "/b", text("des2wf"), lifecycle.EdgeWF2Des, lifecycle.EdgeWF2Des, lifecycle.EdgeDes2WF),
		web.Word(&f, "/c", text("Des2WF"), lifecycle.EdgeWF2Des, lifecycle.EdgeWF2Des, lifecycle.EdgeDes2WF),
		web.Word(&f, "/d", text(""), lifecycle.EdgeWF2Des, lifecycle.EdgeWF2Des, lifecycle.EdgeDes2WF),
	}
	if diff := cmp.Diff([]lifecycle.Edge{"wf2des", "des2wf", "wf2des", "wf2des"}, got); diff != "" {
		t.Error(diff)
	}
	web.Word(&f, "/e", nil, "", "a", "b", "c")
	want := []string{"/c: must be wf2des or des2wf", "/d: must be wf2des or des2wf", "/e: is required: a, b or c"}
	if diff := cmp.Diff(want, refusals(&f)); diff != "" {
		t.Error(diff)
	}
}

func TestNumberKeepsItsBounds(t *testing.T) {
	var f web.Fields
	for _, n := range []int64{0, 1, 9, 10} {
		got := f.Number("/n", &n, 1, 9)
		if inside := n >= 1 && n <= 9; inside && got != n {
			t.Errorf("%d became %d", n, got)
		}
	}
	f.Number("/m", nil, 1, 9)
	want := []string{"/n: must be between 1 and 9", "/n: must be between 1 and 9", "/m: is required"}
	if diff := cmp.Diff(want, refusals(&f)); diff != "" {
		t.Error(diff)
	}
}

func TestFieldsWithoutProblemsIsNoError(t *testing.T) {
	var f web.Fields
	text := "a"
	f.Text("/a", &text, true, 1)
	f.Text("/b", nil, false, 1)
	if err := f.Err(); err != nil {
		t.Error(err)
	}
}
