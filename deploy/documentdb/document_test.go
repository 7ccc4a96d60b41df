package main

import (
	"errors"
	"strings"
	"testing"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/resultdoc"
	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Catches a number that the row cannot hold, one of another attempt, and one that is missed for its type.
func TestNumbers(t *testing.T) {
	t.Parallel()
	s := open(t)
	half := new(lifecycle.Score(5000))
	for name, c := range map[string]struct {
		confidence, score, version any
		want                       resultdoc.Numbers
	}{
		"all": {bson.D{{Key: "flag_count", Value: int32(3)}}, 0.5, "ds@1.0",
			resultdoc.Numbers{FlagCount: new(3), Score: half, ScoreVersion: new("ds@1.0")}},
		"other types": {bson.D{{Key: "flag_count", Value: int64(3)}}, int32(1), "v",
			resultdoc.Numbers{FlagCount: new(3), Score: new(lifecycle.Score(10000)), ScoreVersion: new("v")}},
		"JavaScript":       {bson.D{{Key: "flag_count", Value: 3.0}}, 0.5, nil, resultdoc.Numbers{FlagCount: new(3), Score: half}},
		"no whole number":  {bson.D{{Key: "flag_count", Value: 3.5}}, -0.01, "v", resultdoc.Numbers{}},
		"out of bounds":    {bson.D{{Key: "flag_count", Value: -1}}, 1.01, "v", resultdoc.Numbers{}},
		"too large":        {bson.D{{Key: "flag_count", Value: int64(1) << 40}}, 1e300, "v", resultdoc.Numbers{}},
		"texts":            {"three", "0.5", "v", resultdoc.Numbers{}},
		"a long version":   {nil, 0.5, strings.Repeat("v", 33), resultdoc.Numbers{Score: half}},
		"a broken version": {nil, 0.5, "a\nb", resultdoc.Numbers{Score: half}},
	} {
		id := fresh()
		s.put(t, bson.D{{Key: "_id", Value: id}, {Key: "attempt", Value: 2}, {Key: "confidence", Value: c.confidence},
			{Key: "score", Value: c.score}, {Key: "score_version", Value: c.version}})
		got, err := s.Numbers(t.Context(), lifecycle.Ref{Kind: lifecycle.WF2Des, ID: id}, 2)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		for _, other := range []int{1, 3} {
			if got, err := s.Numbers(t.Context(), lifecycle.Ref{ID: id}, other); got != (resultdoc.Numbers{}) || err != nil {
				t.Errorf("%s: attempt %d is given %+v, %v", name, other, got, err)
			}
		}
	}
}

// Catches a worker's write that loses the decision, keeps an old attempt's, goes back to an older attempt, or grows with repetition.
func TestWorkersWrites(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := fresh()
	first := resultdoc.Document{RunID: id, Attempt: 1, Parse: resultdoc.Parse{Components: []string{"List"}},
		Confidence: &resultdoc.Confidence{FlagCount: 1}}
	must(t, s.Write(t.Context(), first))
	must(t, s.tell(t, decided(id, 1, lifecycle.WasConfirmed)))
	assembled := first
	assembled.Score, assembled.Confidence = new(0.75), &resultdoc.Confidence{FlagCount: 2}
	for range 2 {
		must(t, s.Write(t.Context(), assembled))
	}
	got := s.read(t, id)
	if got.Parse.Confirmed == nil || got.Confidence.FlagCount != 2 || got.Score == nil || *got.Score != 0.75 {
		t.Errorf("after the decision: %+v", got)
	}
	second := resultdoc.Document{RunID: id, Attempt: 2, Parse: resultdoc.Parse{Components: []string{"Header"}}}
	must(t, s.Write(t.Context(), second))
	if diff := cmp.Diff(second, s.read(t, id)); diff != "" {
		t.Errorf("a new attempt (-want +got):\n%s", diff)
	}
	before := s.text(t, id)
	if err := s.Write(t.Context(), assembled); !errors.Is(err, resultdoc.ErrSuperseded) {
		t.Errorf("the old worker is told %v", err)
	}
	if diff := cmp.Diff(before, s.text(t, id)); diff != "" {
		t.Errorf("the old worker changed the document:\n%s", diff)
	}
}
