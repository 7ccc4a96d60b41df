package main

import (
	"strings"
	"testing"
	"time"

	"framerun.dev/pkg/events"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/servicetest"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Catches progress that is stored, that is passed on without the row's version (so that it would be shown with another state), or
// that is passed on unfit.
func TestProgressGoesToTheNerve(t *testing.T) {
	t.Parallel()
	e := listen(t)
	for _, kind := range lifecycle.Kinds {
		run := e.In(t, kind, servicetest.StatesOf(kind)[0])
		for name, tc := range map[string]struct {
			said members
			want events.Progress
		}{
			"both":            {members{"percent": 0, "message": "フレームを読んでいます"}, events.Progress{Percent: new(0.), Message: "フレームを読んでいます"}},
			"percent":         {members{"percent": 100}, events.Progress{Percent: new(100.)}},
			"a fraction":      {members{"percent": 33.34}, events.Progress{Percent: new(33.34)}},
			"message":         {members{"message": " nearly\n there "}, events.Progress{Message: "nearly there"}},
			"an unfit one":    {members{"percent": 3, "message": "reading /var/lib/models/x"}, events.Progress{Percent: new(3.)}},
			"200 characters":  {members{"message": strings.Repeat("長", 200)}, events.Progress{Message: strings.Repeat("長", 200)}},
			"one more":        {members{"message": strings.Repeat("長", 201)}, events.Progress{Message: strings.Repeat("長", 199) + "…"}},
			"an empty one":    {members{"message": ""}, events.Progress{}},
			"null beside one": {members{"percent": nil, "message": "x"}, events.Progress{Message: "x"}},
		} {
			before := time.Now()
			e.unchanged(t, name, func() {
				mustTell(t, name, e.say(t, about(run, progress, members{"progress": tc.said})), answered("applied", run.State, 1, true))
				_, reports := e.nerve.take()
				if tc.want.Version = run.UpdatedAt; len(reports) == 1 && (reports[0].P.At.Before(before) || reports[0].P.At.After(time.Now())) {
					t.Errorf("%s: it was said at %v", name, reports[0].P.At)
				}
				if diff := cmp.Diff([]report{{run.Ref, tc.want}}, reports, cmpopts.IgnoreFields(events.Progress{}, "At")); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			})
		}
	}
}

// Catches progress without content, or beyond its bounds, that is shown.
func TestProgressThatMakesNoSense(t *testing.T) {
	t.Parallel()
	e := listen(t)
	run := e.In(t, lifecycle.WF2Des, lifecycle.Parsing)
	for name, tc := range map[string]struct {
		said  any
		fault string
	}{
		"absent": {nil, "/progress"}, "empty": {members{}, "/progress"}, "below 0": {members{"percent": -0.1}, "/progress/percent"},
		"above 100": {members{"percent": 100.1}, "/progress/percent"},
	} {
		p := e.say(t, about(run, progress, members{"progress": tc.said})).Refused(t, 422, "invalid_field")
		if diff := cmp.Diff([]string{tc.fault}, servicetest.Faults(p)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, reports := e.nerve.take(); len(reports) > 0 {
		t.Errorf("passed on: %v", reports)
	}
}
