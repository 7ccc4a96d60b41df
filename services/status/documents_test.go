package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/resultdoc"
	"framerun.dev/pkg/servicetest"
	"github.com/google/go-cmp/cmp"
)

// shelf is a document store that a test plays.
type shelf func(ctx context.Context, run lifecycle.Ref, attempt int) (resultdoc.Numbers, error)

func (s shelf) Numbers(ctx context.Context, run lifecycle.Ref, attempt int) (resultdoc.Numbers, error) {
	return s(ctx, run, attempt)
}

var kept = resultdoc.Numbers{FlagCount: new(7), Score: new(lifecycle.Score(4321)), ScoreVersion: new("doc@1")}

// Catches a number of the document that takes the place of the worker's own, one that is left out, and a score beside another's version.
func TestMissingNumbersAreReadFromTheDocument(t *testing.T) {
	t.Parallel()
	e := listen(t)
	for name, c := range map[string]struct {
		said, found, want members
	}{
		"nothing said":    {members{}, nil, members{"flag_count": 7., "score": .4321, "score_version": "doc@1"}},
		"all said":        {members{"flag_count": 1, "score": .5, "score_version": "v"}, nil, members{"flag_count": 1., "score": .5, "score_version": "v"}},
		"flags said":      {members{"flag_count": 0}, nil, members{"flag_count": 0., "score": .4321, "score_version": "doc@1"}},
		"score said":      {members{"score": .5}, nil, members{"flag_count": 7., "score": .5, "score_version": nil}},
		"same version":    {members{"score_version": "doc@1"}, nil, members{"flag_count": 7., "score": .4321, "score_version": "doc@1"}},
		"another version": {members{"score_version": "ds@2"}, nil, members{"flag_count": 7., "score": nil, "score_version": "ds@2"}},
	} {
		run := e.In(t, lifecycle.WF2Des, lifecycle.Assembling)
		asked := 0
		e.server.documents = shelf(func(_ context.Context, of lifecycle.Ref, attempt int) (resultdoc.Numbers, error) {
			if asked++; of != run.Ref || attempt != 1 {
				t.Errorf("%s: the document of %v, attempt %d, was asked for", name, of, attempt)
			}
			return kept, nil
		})
		word := members{"result_url": key(run)}
		for member, value := range c.said {
			word[member] = value
		}
		mustTell(t, name, e.say(t, about(run, completed, word)), answered("applied", lifecycle.Completed, 1, false))
		row := e.Row(t, run.Ref)
		if diff := cmp.Diff(map[string]any(c.want), map[string]any{"flag_count": row["flag_count"], "score": row["score"], "score_version": row["score_version"]}); diff != "" {
			t.Errorf("%s (-want +row):\n%s", name, diff)
		}
		if want := map[bool]int{true: 0, false: 1}[name == "all said"]; asked != want {
			t.Errorf("%s: asked %d times", name, asked)
		}
	}
}

// Catches a document store that is asked for what it cannot know.
func TestDocumentsAreAskedOnlyOnCompletion(t *testing.T) {
	t.Parallel()
	e := listen(t)
	e.server.documents = shelf(func(context.Context, lifecycle.Ref, int) (resultdoc.Numbers, error) {
		t.Error("the document was asked for")
		return kept, nil
	})
	code := e.In(t, lifecycle.Code2WF, lifecycle.Processing)
	e.say(t, about(code, completed, members{"result_url": key(code)}))
	for what, state := range map[event]lifecycle.State{parsed: lifecycle.Parsing, failed: lifecycle.Parsing, progress: lifecycle.Assembling} {
		e.say(t, whole(e.In(t, lifecycle.WF2Des, state), what))
	}
}

// Catches a store that is down, silent or deaf and fails a completion or holds it up.
func TestStoreThatIsAwayHoldsUpNoCompletion(t *testing.T) {
	t.Parallel()
	silent := servicetest.Listen(t) // takes connections and says nothing
	defer silent.Close()
	hung, err := resultdoc.Open("mongodb://" + silent.Addr().String() + "/framerun?directConnection=true")
	if err != nil {
		t.Fatal(err)
	}
	defer hung.Close(t.Context())
	e := listen(t)
	for name, away := range map[string]documents{
		"down": shelf(func(context.Context, lifecycle.Ref, int) (resultdoc.Numbers, error) {
			return resultdoc.Numbers{}, errors.New("connection refused")
		}),
		"slow": shelf(func(ctx context.Context, _ lifecycle.Ref, _ int) (resultdoc.Numbers, error) {
			<-ctx.Done()
			return resultdoc.Numbers{}, ctx.Err()
		}),
		"silent": hung,
	} {
		e.server.documents = away
		run := e.In(t, lifecycle.WF2Des, lifecycle.Assembling)
		began := time.Now()
		reply := e.say(t, about(run, completed, members{"result_url": key(run), "flag_count": 2}))
		mustTell(t, name, reply, answered("applied", lifecycle.Completed, 1, false))
		if took := time.Since(began); took > numbersWithin+time.Second {
			t.Errorf("%s: it took %s", name, took)
		}
		if row := e.Row(t, run.Ref); row["flag_count"] != 2. || row["score"] != nil || row["score_version"] != nil {
			t.Errorf("%s: the row holds %v, %v", name, row["flag_count"], row["score"])
		}
	}
}
