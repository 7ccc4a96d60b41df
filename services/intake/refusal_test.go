package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
)

// refused checks that a request is answered with the problem, whose faults stand at the given places, and that nothing changed.
func (in *intake) refused(t *testing.T, ask func() servicetest.Reply, status int, code string, at ...string) map[string]any {
	t.Helper()
	before := in.Content(t)
	problem := ask().Refused(t, status, code)
	if diff := cmp.Diff(before, in.Content(t)); diff != "" {
		t.Errorf("a refused request changed something: %s", diff)
	}
	if got := servicetest.Faults(problem); !slices.Equal(got, at) {
		t.Errorf("the faults are at %q; want %q (%v)", got, at, problem)
	}
	return problem
}

// What can be read but makes no sense is 422 at its member; all that is wrong is said at once.
func TestFieldsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	in := open(t)
	for _, c := range []struct {
		name string
		path string
		body map[string]any
		at   []string
	}{
		{"nothing said, wf2des", wf2des, map[string]any{}, []string{"/figmaFileKey", "/wfNodeId", "/screenId"}},
		{"nothing said, code2wf", code2wf, map[string]any{}, []string{"/pageImportId", "/figmaFileKey", "/screenId"}},
		{"no file", wf2des, with(plainWF2Des, "figmaFileKey", nil), []string{"/figmaFileKey"}},
		{"no node", wf2des, with(plainWF2Des, "wfNodeId", nil), []string{"/wfNodeId"}},
		{"no screen", wf2des, with(plainWF2Des, "screenId", nil), []string{"/screenId"}},
		{"no page import", code2wf, with(plainCode2WF, "pageImportId", nil), []string{"/pageImportId"}},
		{"an empty page import", code2wf, with(plainCode2WF, "pageImportId", ""), []string{"/pageImportId"}},
		{"an empty screen", wf2des, with(plainWF2Des, "screenId", ""), []string{"/screenId"}},
		{"an empty file", wf2des, with(plainWF2Des, "figmaFileKey", ""), []string{"/figmaFileKey"}},
		{"a blank file", wf2des, with(plainWF2Des, "figmaFileKey", " \t"), []string{"/figmaFileKey"}},
		{"an empty node", wf2des, with(plainWF2Des, "wfNodeId", ""), []string{"/wfNodeId"}},
		{"a node with a space", wf2des, with(plainWF2Des, "wfNodeId", "1:2 "), []string{"/wfNodeId"}},
		{"a mixed node", wf2des, with(plainWF2Des, "wfNodeId", "I5:6;7-8"), []string{"/wfNodeId"}},
		{"an empty placement", wf2des, with(plainWF2Des, "placementTarget", ""), []string{"/placementTarget"}},
		{"a placement that is no node", code2wf, with(plainCode2WF, "placementTarget", "here"), []string{"/placementTarget"}},
		{"an unknown edge", wf2des, with(plainWF2Des, "edge", "code2wf"), []string{"/edge"}},
		{"an edge by its digit", wf2des, with(plainWF2Des, "edge", "1"), []string{"/edge"}},
		{"an edge in another case", wf2des, with(plainWF2Des, "edge", "WF2DES"), []string{"/edge"}},
		{"an empty edge", wf2des, with(plainWF2Des, "edge", ""), []string{"/edge"}},
		{"an unknown confirm mode", wf2des, with(plainWF2Des, "autoConfirm", "yes"), []string{"/autoConfirm"}},
		{"NUL in the file", wf2des, with(plainWF2Des, "figmaFileKey", "a\x00b"), []string{"/figmaFileKey"}},
		{"NUL in the node", wf2des, with(plainWF2Des, "wfNodeId", "1:2\x00"), []string{"/wfNodeId"}},
		{"NUL in the screen", wf2des, with(plainWF2Des, "screenId", "\x00"), []string{"/screenId"}},
		{"NUL in the prompt", wf2des, with(plainWF2Des, "prompt", "a\x00"), []string{"/prompt"}},
		{"NUL in the placement", wf2des, with(plainWF2Des, "placementTarget", "1:2\x00"), []string{"/placementTarget"}},
		{"NUL in the page import", code2wf, with(plainCode2WF, "pageImportId", "\x00"), []string{"/pageImportId"}},
		{"all at once", wf2des, map[string]any{"edge": "x", "prompt": "\x00", "autoConfirm": "x", "wfNodeId": "x", "placementTarget": "x"},
			[]string{"/autoConfirm", "/figmaFileKey", "/wfNodeId", "/screenId", "/edge", "/placementTarget", "/prompt"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in.refused(t, func() servicetest.Reply { return in.post(t, c.path, in.Owner, c.body) }, 422, "invalid_field", c.at...)
		})
	}
}

// Lengths are counted in code points, as PostgreSQL counts: at the limit a text is stored whole, one more is refused.
func TestLengths(t *testing.T) {
	t.Parallel()
	in := open(t)
	units := map[string]string{ // each is a number of code points long
		"ASCII": "a", "Japanese": "画", "emoji": "🦆", "combining": "e\u0301", "family": "👩\u200d👩\u200d👧", "spaces": " ", "lone marks": "\u0301",
	}
	// fill repeats unit to exactly n code points.
	fill := func(unit string, n int) string {
		runes := []rune(strings.Repeat(unit, n))
		return string(runes[:n])
	}
	for name, unit := range units {
		for _, c := range []struct {
			path, member, column string
			max                  int
		}{
			{wf2des, "screenId", "screen_id", 255},
			{wf2des, "figmaFileKey", "figma_file_key", 255},
			{wf2des, "prompt", "prompt", 8000},
			{code2wf, "screenId", "screen_id", 255},
			{code2wf, "figmaFileKey", "figma_file_key", 255},
		} {
			if name == "spaces" && c.member == "figmaFileKey" {
				continue // blank, which a file key must not be at any length
			}
			t.Run(fmt.Sprint(name, c.path, c.member), func(t *testing.T) {
				kind, body := lifecycle.Code2WF, plainCode2WF
				if c.path == wf2des {
					kind, body = lifecycle.WF2Des, with(plainWF2Des, "wfNodeId", in.Draft(lifecycle.WF2Des).WFNodeID)
				}
				whole := fill(unit, c.max)
				run := in.created(t, kind, in.post(t, c.path, in.Owner, with(body, c.member, whole)))
				if got := in.Row(t, run.Ref)[c.column]; got != whole {
					t.Errorf("%d code points became %q", c.max, got)
				}
				long := fill(unit, c.max+1)
				in.refused(t, func() servicetest.Reply { return in.post(t, c.path, in.Owner, with(body, c.member, long)) },
					422, "invalid_field", "/"+c.member)
			})
		}
	}
	digits := func(n int) string { return "1:" + strings.Repeat("2", n-2) }
	for _, member := range []string{"wfNodeId", "placementTarget"} {
		in.created(t, lifecycle.WF2Des, in.post(t, wf2des, in.Owner, with(plainWF2Des, "screenId", member, member, digits(255), "edge", map[string]string{
			"wfNodeId": "wf2des", "placementTarget": "des2wf"}[member])))
		in.refused(t, func() servicetest.Reply { return in.post(t, wf2des, in.Owner, with(plainWF2Des, member, digits(256))) },
			422, "invalid_field", "/"+member)
	}
	in.refused(t, func() servicetest.Reply {
		return in.post(t, code2wf, in.Owner, with(plainCode2WF, "pageImportId", strings.Repeat("x", 256)))
	}, 422, "invalid_field", "/pageImportId")
}

// A pasted link is refused with the file key and the node id that are in it, so that a person sees what to send.
func TestPastedFigmaLinks(t *testing.T) {
	t.Parallel()
	in := open(t)
	const link = "https://www.figma.com/design/8o2StT4oizontcC4m5tfLA/Title?node-id=12-34&t=abc"
	for _, c := range []struct {
		path, member string
		body         map[string]any
	}{
		{wf2des, "figmaFileKey", plainWF2Des}, {wf2des, "wfNodeId", plainWF2Des}, {wf2des, "placementTarget", plainWF2Des},
		{code2wf, "figmaFileKey", plainCode2WF}, {code2wf, "placementTarget", plainCode2WF},
	} {
		problem := in.refused(t, func() servicetest.Reply { return in.post(t, c.path, in.Owner, with(c.body, c.member, link)) },
			422, "invalid_field", "/"+c.member)
		if said := fmt.Sprint(problem["errors"]); !strings.Contains(said, "8o2StT4oizontcC4m5tfLA") || !strings.Contains(said, "12:34") {
			t.Errorf("%s: %s does not name the file key and the node", c.member, said)
		}
	}
}

// What cannot be read is refused before it is understood.
func TestBodiesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	in := open(t)
	const good = `{"figmaFileKey":"k","wfNodeId":"1:2","screenId":"s"}`
	const malformed = "malformed_request"
	for _, c := range []struct {
		name, body string
		headers    []string
		status     int
		code       string
		at         []string
	}{
		{"no body", "", nil, 400, malformed, []string{""}},
		{"white space", " \n", nil, 400, malformed, []string{""}},
		{"null", "null", nil, 400, malformed, []string{""}},
		{"an array", "[" + good + "]", nil, 400, malformed, []string{""}},
		{"a string", `"x"`, nil, 400, malformed, []string{""}},
		{"cut off", good[:20], nil, 400, malformed, []string{""}},
		{"trailing text", good + "x", nil, 400, malformed, []string{""}},
		{"two documents", good + good, nil, 400, malformed, []string{""}},
		{"a comment", "/* */" + good, nil, 400, malformed, []string{""}},
		{"a byte order mark", "\ufeff" + good, nil, 400, malformed, []string{""}},
		{"a comma too many", `{"figmaFileKey":"k",}`, nil, 400, malformed, []string{""}},
		{"a member twice", `{"screenId":"a","screenId":"b"}`, nil, 400, malformed, []string{"/screenId"}},
		{"a member twice by escapes", `{"screenId":"a","screen\u0049d":"b"}`, nil, 400, malformed, []string{"/screenId"}},
		{"broken UTF-8", "{\"screenId\":\"\xff\"}", nil, 400, malformed, []string{""}},
		{"UTF-8 of a surrogate", "{\"screenId\":\"\xed\xa0\x80\"}", nil, 400, malformed, []string{""}},
		{"a lone surrogate", `{"screenId":"\ud800"}`, nil, 400, malformed, []string{"/screenId"}},
		{"surrogates in the wrong order", `{"screenId":"\udc00\ud800"}`, nil, 400, malformed, []string{"/screenId"}},
		{"a raw control", "{\"screenId\":\"\b\"}", nil, 400, malformed, []string{"/screenId"}},
		{"a number for a text", `{"screenId":1}`, nil, 400, malformed, []string{"/screenId"}},
		{"an object for a text", `{"screenId":{}}`, nil, 400, malformed, []string{"/screenId"}},
		{"too deep", strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40), nil, 400, malformed, []string{""}},
		{"too large", `{"prompt":"` + strings.Repeat("x", 64<<10) + `"}`, nil, 413, "payload_too_large", nil},
		{"no type", good, []string{"Content-Type", ""}, 415, "unsupported_media_type", nil},
		{"a form", good, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "unsupported_media_type", nil},
		{"text", good, []string{"Content-Type", "text/plain"}, 415, "unsupported_media_type", nil},
		{"another charset", good, []string{"Content-Type", "application/json; charset=shift_jis"}, 415, "unsupported_media_type", nil},
		{"compressed", good, []string{"Content-Encoding", "gzip"}, 415, "unsupported_media_type", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			ask := func() servicetest.Reply { return in.Send(t, "POST", wf2des, in.Owner, c.body, c.headers...) }
			in.refused(t, ask, c.status, c.code, c.at...)
		})
	}
	reply := in.Send(t, "POST", wf2des, in.Owner, good, "Content-Type", "application/json; charset=UTF-8")
	in.created(t, lifecycle.WF2Des, reply)
}

// What the suite itself decides cannot be said by a caller, in no spelling.
func TestNobodySetsWhatTheSuiteDecides(t *testing.T) {
	t.Parallel()
	in := open(t)
	owned := []string{
		"id", "wf2desId", "code2wfId", "jobId", "organizationId", "projectId", "status", "phase", "attempt", "triggerSurface", "errorMessage",
		"resultUrl", "flagCount", "materializedAt", "feedbackStatus", "score", "scoreVersion", "createdAt", "updatedAt", "deletedAt",
		"createdBy", "updatedBy", "deletedBy", "kind", "done", "nextActions", "links", "progress",
		"organization_id", "created_by", "trigger_surface", "result_url",
		"STATUS", "Attempt", "triggersurface", "CreatedBy", "ſtatus", "__proto__",
	}
	odd := map[string][]string{
		wf2des:  {"FigmaFileKey", "figmafilekey", "figma_file_key", "wfNodeID", "ScreenId", "EDGE", "Prompt", "autoconfirm", "pageImportId"},
		code2wf: {"PageImportId", "page_import_id", "SCREENID", "wfNodeId", "edge", "prompt", "autoConfirm"},
	}
	for path, body := range map[string]map[string]any{wf2des: plainWF2Des, code2wf: plainCode2WF} {
		for _, member := range slices.Concat(owned, odd[path]) {
			for _, value := range []any{"1", 1, nil} {
				said := maps.Clone(body)
				said[member] = value
				problem := in.refused(t, func() servicetest.Reply { return in.post(t, path, in.Owner, said) }, 400, "malformed_request", "/"+member)
				if detail := fmt.Sprint(problem["errors"]); !strings.Contains(detail, "unknown member") {
					t.Errorf("%s: %s", member, detail)
				}
			}
		}
	}
}

// The page import must be a completed one of the same project, not a deleted one.
func TestPageImportsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	in := open(t)
	in.SQL.MustExec(`INSERT INTO page_import (id, organization_id, project_id, status) VALUES ('failed', 1, 1, '2')`)
	for name, id := range map[string]string{
		"unfinished": platform.UnfinishedPageImportID, "failed": "failed", "deleted": platform.DeletedPageImportID,
		"another project's": platform.OtherProjectPageImportID, "another organization's": platform.OtherOrganizationPageImportID,
		"unknown": "01980000-0000-7000-8000-00000000ffff", "with a space": platform.PageImportID + " ",
	} {
		t.Run(name, func(t *testing.T) {
			in.refused(t, func() servicetest.Reply { return in.post(t, code2wf, in.Owner, with(plainCode2WF, "pageImportId", id)) },
				422, "invalid_field", "/pageImportId")
		})
	}
	in.SQL.MustExec(`UPDATE page_import SET status = '1' WHERE id = 'failed'`)
	in.created(t, lifecycle.Code2WF, in.post(t, code2wf, in.Owner, with(plainCode2WF, "pageImportId", "failed")))
}

func TestPathsThatNameNoProject(t *testing.T) {
	t.Parallel()
	in := open(t)
	for _, project := range []string{"999", "0", "-1", "01", "+1", "1.0", "9223372036854775808", "a", "%31", "1%2F2", "1;2"} {
		in.refused(t, func() servicetest.Reply { return in.post(t, "/v1/projects/"+project+"/wf2des", in.Owner, plainWF2Des) }, 404, "not_found")
	}
	for _, path := range []string{wf2des + "/", "/" + wf2des, "/v1/projects/1/des2wf", "/v1/projects/1/../1/wf2des", "/V1/projects/1/wf2des"} {
		in.refused(t, func() servicetest.Reply { return in.post(t, path, in.Owner, plainWF2Des) }, 404, "not_found")
	}
}
