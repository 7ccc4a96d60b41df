package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"github.com/google/go-cmp/cmp"
)

// Catches a completed run without a result that can be fetched, or with somebody else's; and a run that is spoilt for the right key by
// a wrong one before.
func TestResultKeys(t *testing.T) {
	t.Parallel()
	e := listen(t)
	other := e.In(t, lifecycle.WF2Des, lifecycle.Assembling)
	for _, kind := range lifecycle.Kinds {
		state := lifecycle.Assembling
		if kind == lifecycle.Code2WF {
			state = lifecycle.Processing
		}
		run := e.In(t, kind, state)
		prefix := string(kind) + "/" + run.ID + "/"
		e.unchanged(t, "a bad result_url", func() {
			for name, bad := range map[string]any{
				"absent": nil, "empty": "", "the prefix alone": prefix, "a scheme": "s3://bucket/" + key(run), "a link": "https://x.example/" + key(run),
				"a leading slash": "/" + key(run), "a way out": prefix + "1/../../" + other.ID + "/1/spec.json", "dots at the end": prefix + "..",
				"another run's": key(other), "another's that begins alike": string(kind) + "/" + run.ID + "0/spec.json",
				"the other kind's": "x" + key(run), "upper case": strings.ToUpper(key(run)), "an empty segment": prefix + "1//spec.json",
				"a backslash": prefix + `1\spec.json`, "501 characters": prefix + strings.Repeat("x", 501-len(prefix)),
				"501 emoji": prefix + strings.Repeat("🚀", 501-len(prefix)), "NUL": prefix + "a\x00", "a line feed": prefix + "a\nb",
				"escape": prefix + "\x1b[2J", "C1": prefix + "a\u0085",
			} {
				p := e.say(t, about(run, completed, members{"result_url": bad})).Refused(t, 422, "invalid_field")
				if diff := cmp.Diff([]string{"/result_url"}, servicetest.Faults(p)); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		})
		longest := prefix + strings.Repeat("結", 500-len(prefix))
		mustTell(t, "500 characters", e.say(t, about(run, completed, members{"result_url": longest})), answered("applied", lifecycle.Completed, 1, false))
		if row := e.Row(t, run.Ref); row["result_url"] != longest || row["flag_count"] != nil {
			t.Errorf("the row: %v", row)
		}
	}
}

// Catches numbers that cannot be stored, shown or compared, and those that are refused or bent although they are right.
func TestResultNumbers(t *testing.T) {
	t.Parallel()
	e := listen(t)
	for _, tc := range []struct {
		member, value string
		status        int
		stored        any
	}{
		{"flag_count", `0`, 200, 0.}, {"flag_count", `2147483647`, 200, 2147483647.}, {"flag_count", `null`, 200, nil},
		{"flag_count", `-1`, 422, nil}, {"flag_count", `2147483648`, 422, nil}, {"flag_count", `9223372036854775808`, 400, nil},
		{"flag_count", `1.5`, 400, nil}, {"flag_count", `"3"`, 400, nil}, {"flag_count", `true`, 400, nil},
		{"score", `0`, 200, 0.}, {"score", `1`, 200, 1.}, {"score", `1.0000`, 200, 1.}, {"score", `0.8125`, 200, 0.8125}, {"score", `1e-4`, 200, 0.0001},
		{"score", `-0`, 200, 0.}, {"score", `-0.0`, 200, 0.}, {"score", `0.12345`, 200, 0.1235}, {"score", `0.00004`, 200, 0.}, {"score", `0.99999`, 200, 1.},
		{"score", `null`, 200, nil}, {"score", `9.99995`, 422, nil}, {"score", `1.00001`, 422, nil}, {"score", `-0.00001`, 422, nil}, {"score", `2`, 422, nil},
		{"score", `1e308`, 422, nil}, {"score", `1e400`, 400, nil}, {"score", `-1e400`, 400, nil}, {"score", `"0.5"`, 400, nil}, {"score", `NaN`, 400, nil},
		{"score", `"NaN"`, 400, nil}, {"score", `Infinity`, 400, nil}, {"score", `.5`, 400, nil}, {"score", `0x1`, 400, nil}, {"score", `[0.5]`, 400, nil},
		{"score_version", `"ds@1.0"`, 200, "ds@1.0"}, {"score_version", `"` + strings.Repeat("🚀", 32) + `"`, 200, strings.Repeat("🚀", 32)},
		{"score_version", `null`, 200, nil}, {"score_version", `"` + strings.Repeat("x", 33) + `"`, 422, nil}, {"score_version", `"a\u0000"`, 422, nil},
		{"score_version", `1`, 400, nil},
	} {
		run := e.In(t, lifecycle.WF2Des, lifecycle.Assembling)
		name := tc.member + " " + tc.value
		body := strings.TrimSuffix(about(run, completed, members{"result_url": key(run)}), "}") + fmt.Sprintf(`,%q:%s}`, tc.member, tc.value)
		reply := e.say(t, body)
		if tc.status == 200 {
			mustTell(t, name, reply, answered("applied", lifecycle.Completed, 1, false))
			if got := e.Row(t, run.Ref)[tc.member]; got != tc.stored {
				t.Errorf("%s is stored as %v, want %v", name, got, tc.stored)
			}
			continue
		}
		if reply.Status != tc.status {
			t.Errorf("%s: got %d %s", name, reply.Status, reply.Body)
		}
		if faults := servicetest.Faults(reply.JSON(t)); tc.status == 422 && !slices.Equal(faults, []string{"/" + tc.member}) {
			t.Errorf("%s: faults %v", name, faults)
		}
		mustTell(t, "the right word after "+name, e.say(t, whole(run, completed)), answered("applied", lifecycle.Completed, 1, false))
	}
}

// Catches a score that a code2wf run has no column for and that makes its completion fail or vanish from the timeline.
func TestCode2WFKeepsItsScoreInTheTimeline(t *testing.T) {
	t.Parallel()
	e := listen(t)
	run := e.In(t, lifecycle.Code2WF, lifecycle.Processing)
	mustTell(t, "completed", e.say(t, whole(run, completed)), answered("applied", lifecycle.Completed, 1, false))
	if data := e.LastLine(t, run.Ref).Data; !strings.Contains(data, `"score_e4": 9031`) || !strings.Contains(data, `"ds@2.0"`) {
		t.Errorf("the line: %s", data)
	}
}
