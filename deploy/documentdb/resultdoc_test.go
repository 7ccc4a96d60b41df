package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
	"uuid"

	"framerun.dev/deploy/documentdb/server"
	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/resultdoc"
	"framerun.dev/pkg/servicetest"
	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// shelf is a document store of a test's own, and a second way into it.
type shelf struct {
	*resultdoc.Documents
	raw *mongo.Collection
	url string
}

func open(t *testing.T) *shelf {
	t.Helper()
	s, err := server.Start(servicetest.FreeAddress(t), t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return enter(t, s.URL())
}

// enter opens the store at address.
func enter(t *testing.T, address string) *shelf {
	t.Helper()
	documents, err := resultdoc.Open(address)
	if err != nil {
		t.Fatal(err)
	}
	client, err := mongo.Connect(options.Client().ApplyURI(address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { documents.Close(t.Context()); client.Disconnect(t.Context()) })
	return &shelf{documents, client.Database("framerun").Collection(resultdoc.Collection), address}
}

// put stores a document behind the package's back, as a worker in another language would.
func (s *shelf) put(t *testing.T, doc bson.D) {
	t.Helper()
	if _, err := s.raw.InsertOne(t.Context(), doc); err != nil {
		t.Fatal(err)
	}
}

// text is the whole document as it stands; empty if there is none.
func (s *shelf) text(t *testing.T, id string) string {
	t.Helper()
	raw, err := s.raw.FindOne(t.Context(), bson.D{{Key: "_id", Value: id}}).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw.String()
}

func (s *shelf) read(t *testing.T, id string) (doc resultdoc.Document) {
	t.Helper()
	if err := s.raw.FindOne(t.Context(), bson.D{{Key: "_id", Value: id}}).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// parsed is a document as a worker leaves it, with a member that the suite does not know.
func parsed(id string, attempt int) bson.D {
	return bson.D{
		{Key: "_id", Value: id}, {Key: "attempt", Value: attempt}, {Key: "request", Value: bson.D{{Key: "placement_target", Value: "1:2"}}},
		{Key: "parse", Value: bson.D{{Key: "components", Value: bson.A{"Header"}}, {Key: "notes", Value: "the worker's own"}}},
		{Key: "confidence", Value: bson.D{{Key: "flag_count", Value: 3}, {Key: "why", Value: "blurred"}}},
	}
}

// decided is what happened: who decided what about which attempt, a moment ago.
func decided(id string, attempt int, what lifecycle.What) lifecycle.Announcement {
	return lifecycle.Announcement{Event: lifecycle.Event{
		Run: lifecycle.Ref{Kind: lifecycle.WF2Des, ID: id}, What: what, Attempt: attempt, At: time.Now().UTC(),
		By: lifecycle.Actor{Voice: lifecycle.User, Name: platform.UserPlugin},
	}}
}

func (s *shelf) tell(t *testing.T, a lifecycle.Announcement) error {
	t.Helper()
	return s.Send(t.Context(), []lifecycle.Announcement{a})[0]
}

func fresh() string { return uuid.NewV7().String() }

// Catches a decision without its name or time, one under the wrong member, and one that disturbs what the worker wrote.
func TestDecisionIsWrittenBesideTheWorkersWords(t *testing.T) {
	t.Parallel()
	s := open(t)
	for what, member := range map[lifecycle.What]string{lifecycle.WasConfirmed: "confirmed", lifecycle.WasRejected: "rejected"} {
		id := fresh()
		s.put(t, parsed(id, 1))
		a := decided(id, 1, what)
		if err := s.tell(t, a); err != nil {
			t.Fatal(err)
		}
		want := parsed(id, 1)
		decision := bson.D{{Key: "by", Value: platform.UserPlugin}, {Key: "at", Value: bson.NewDateTimeFromTime(a.Event.At)}}
		parse := want[3].Value.(bson.D)
		want[3].Value = append(parse, bson.E{Key: member, Value: decision})
		raw, err := bson.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(bson.Raw(raw).String(), s.text(t, id)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// Catches a decision that is written anew when it is told again: by another time or name, or beside its opposite.
func TestToldAgainChangesNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := fresh()
	s.put(t, parsed(id, 1))
	a := decided(id, 1, lifecycle.WasConfirmed)
	if err := s.tell(t, a); err != nil {
		t.Fatal(err)
	}
	before := s.text(t, id)
	later := decided(id, 1, lifecycle.WasConfirmed)
	later.Event.At, later.Event.By.Name = later.Event.At.Add(time.Hour), "somebody else"
	for _, again := range []lifecycle.Announcement{a, later} {
		if err := s.tell(t, again); err != nil {
			t.Errorf("told again: %v", err)
		}
	}
	if err := s.tell(t, decided(id, 1, lifecycle.WasRejected)); !errors.Is(err, lifecycle.ErrUndeliverable) {
		t.Errorf("the opposite: %v", err)
	}
	if diff := cmp.Diff(before, s.text(t, id)); diff != "" {
		t.Errorf("the document changed:\n%s", diff)
	}
}

// Catches a document that is made, overwritten or given a decision of another attempt; and a cause that does not say what was found.
func TestDocumentsThatCannotTakeTheDecision(t *testing.T) {
	t.Parallel()
	s := open(t)
	with := func(id string, name string, value any) bson.D {
		doc := parsed(id, 1)
		for i := range doc {
			if doc[i].Key == name {
				doc[i].Value = value
			}
		}
		return doc
	}
	old := func(a lifecycle.Announcement) lifecycle.Announcement {
		a.Event.At = a.Event.At.Add(-25 * time.Hour)
		return a
	}
	for name, c := range map[string]struct {
		doc   func(id string) bson.D // nil: there is none
		told  func(id string) lifecycle.Announcement
		want  error
		cause string
	}{
		"no document yet":        {nil, func(id string) lifecycle.Announcement { return decided(id, 1, lifecycle.WasConfirmed) }, lifecycle.ErrTooEarly, "no document"},
		"no document for a day":  {nil, func(id string) lifecycle.Announcement { return old(decided(id, 1, lifecycle.WasConfirmed)) }, lifecycle.ErrUndeliverable, "no document"},
		"an older attempt":       {func(id string) bson.D { return parsed(id, 1) }, func(id string) lifecycle.Announcement { return decided(id, 2, lifecycle.WasRejected) }, lifecycle.ErrTooEarly, "attempt 1"},
		"a newer attempt":        {func(id string) bson.D { return parsed(id, 3) }, func(id string) lifecycle.Announcement { return decided(id, 2, lifecycle.WasConfirmed) }, lifecycle.ErrOutdated, "attempt 3"},
		"no attempt":             {func(id string) bson.D { return bson.D{{Key: "_id", Value: id}} }, func(id string) lifecycle.Announcement { return decided(id, 1, lifecycle.WasConfirmed) }, lifecycle.ErrUndeliverable, "no attempt"},
		"a parse that is a text": {func(id string) bson.D { return with(id, "parse", "done") }, func(id string) lifecycle.Announcement { return decided(id, 1, lifecycle.WasConfirmed) }, lifecycle.ErrUndeliverable, "no room"},
		"not a decision":         {func(id string) bson.D { return parsed(id, 1) }, func(id string) lifecycle.Announcement { return decided(id, 1, lifecycle.WasPlaced) }, lifecycle.ErrUndeliverable, "placed"},
		"both decisions": {func(id string) bson.D {
			return with(id, "parse", bson.D{{Key: "confirmed", Value: true}, {Key: "rejected", Value: true}})
		}, func(id string) lifecycle.Announcement { return decided(id, 1, lifecycle.WasConfirmed) }, lifecycle.ErrUndeliverable, "both"},
		"a rejection that the plugin has noted": {func(id string) bson.D {
			return with(id, "parse", bson.D{{Key: "rejected", Value: "by the plugin"}})
		}, func(id string) lifecycle.Announcement { return decided(id, 1, lifecycle.WasRejected) }, nil, ""},
	} {
		id := fresh()
		if c.doc != nil {
			s.put(t, c.doc(id))
		}
		before := s.text(t, id)
		err := s.tell(t, c.told(id))
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.cause) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(before, s.text(t, id)); diff != "" {
			t.Errorf("%s changed the document:\n%s", name, diff)
		}
	}
}

// Catches one decision's trouble that becomes its neighbours'.
func TestEachDecisionHasItsOwnAnswer(t *testing.T) {
	t.Parallel()
	s := open(t)
	there, missing, newer, after := fresh(), fresh(), fresh(), fresh()
	s.put(t, parsed(there, 1))
	s.put(t, parsed(newer, 2))
	s.put(t, parsed(after, 1))
	var told []lifecycle.Announcement
	for _, id := range []string{there, missing, newer, after} {
		told = append(told, decided(id, 1, lifecycle.WasConfirmed))
	}
	errs := s.Send(t.Context(), told)
	for i, want := range []error{nil, lifecycle.ErrTooEarly, lifecycle.ErrOutdated, nil} {
		if !errors.Is(errs[i], want) {
			t.Errorf("%d: %v, want %v", i, errs[i], want)
		}
	}
	if s.read(t, after).Parse.Confirmed == nil {
		t.Error("the last one was not written")
	}
}

// Catches a number that the row cannot hold, one of another attempt, and one that is missed for its type.
func TestNumbers(t *testing.T) {
	t.Parallel()
	s := open(t)
	half := new(lifecycle.Score(5000))
	for name, c := range map[string]struct {
		confidence, score, version any
		want                       resultdoc.Numbers
	}{
		"all":              {bson.D{{Key: "flag_count", Value: int32(3)}}, 0.5, "ds@1.0", resultdoc.Numbers{FlagCount: new(3), Score: half, ScoreVersion: new("ds@1.0")}},
		"other types":      {bson.D{{Key: "flag_count", Value: int64(3)}}, int32(1), "v", resultdoc.Numbers{FlagCount: new(3), Score: new(lifecycle.Score(10000)), ScoreVersion: new("v")}},
		"JavaScript":       {bson.D{{Key: "flag_count", Value: 3.0}}, 0.5, nil, resultdoc.Numbers{FlagCount: new(3), Score: half}},
		"no whole number":  {bson.D{{Key: "flag_count", Value: 3.5}}, -0.01, "v", resultdoc.Numbers{}},
		"out of bounds":    {bson.D{{Key: "flag_count", Value: -1}}, 1.01, "v", resultdoc.Numbers{}},
		"too large":        {bson.D{{Key: "flag_count", Value: int64(1) << 40}}, 1e300, "v", resultdoc.Numbers{}},
		"texts":            {"three", "0.5", "v", resultdoc.Numbers{}},
		"a long version":   {nil, 0.5, strings.Repeat("v", 33), resultdoc.Numbers{Score: half}},
		"a broken version": {nil, 0.5, "a\nb", resultdoc.Numbers{Score: half}},
	} {
		id := fresh()
		s.put(t, bson.D{{Key: "_id", Value: id}, {Key: "attempt", Value: 2}, {Key: "confidence", Value: c.confidence}, {Key: "score", Value: c.score}, {Key: "score_version", Value: c.version}})
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
	first := resultdoc.Document{RunID: id, Attempt: 1, Parse: resultdoc.Parse{Components: []string{"List"}}, Confidence: &resultdoc.Confidence{FlagCount: 1}}
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Catches two decisions in one document, a decision in a document of another attempt, and an attempt that falls, when workers of three
// attempts and the relays of two services meet.
func TestRaces(t *testing.T) {
	t.Parallel()
	s := open(t)
	for range 40 {
		id, begin := fresh(), make(chan struct{})
		var racing sync.WaitGroup
		together := func(do func() error) {
			racing.Go(func() {
				<-begin
				if err := do(); err != nil && !known(err) {
					t.Error(err)
				}
			})
		}
		for attempt := range 3 {
			together(func() error {
				return s.Write(t.Context(), resultdoc.Document{RunID: id, Attempt: attempt + 1, Confidence: &resultdoc.Confidence{FlagCount: attempt}})
			})
		}
		for _, what := range []lifecycle.What{lifecycle.WasConfirmed, lifecycle.WasRejected, lifecycle.WasConfirmed} {
			together(func() error { return s.Send(t.Context(), []lifecycle.Announcement{decided(id, 2, what)})[0] })
		}
		close(begin)
		racing.Wait()
		switch doc := s.read(t, id); {
		case doc.Attempt != 3 || doc.Confidence == nil || doc.Confidence.FlagCount != 2:
			t.Errorf("the newest attempt did not win: %+v", doc)
		case doc.Parse.Confirmed != nil || doc.Parse.Rejected != nil:
			t.Errorf("a decision of attempt 2 stands in %+v", doc)
		}
	}
}

func known(err error) bool {
	for _, e := range []error{lifecycle.ErrTooEarly, lifecycle.ErrOutdated, lifecycle.ErrUndeliverable, resultdoc.ErrSuperseded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Catches both decisions in one document when both are told at once, and a loser that believes it has won.
func TestOfTwoDecisionsOneStands(t *testing.T) {
	t.Parallel()
	s := open(t)
	for range 40 {
		id, begin := fresh(), make(chan struct{})
		s.put(t, parsed(id, 1))
		errs := make([]error, 8)
		var racing sync.WaitGroup
		for i := range errs {
			what := []lifecycle.What{lifecycle.WasConfirmed, lifecycle.WasRejected}[i%2]
			racing.Go(func() {
				<-begin
				errs[i] = s.Send(t.Context(), []lifecycle.Announcement{decided(id, 1, what)})[0]
			})
		}
		close(begin)
		racing.Wait()
		parse := s.read(t, id).Parse
		if (parse.Confirmed == nil) == (parse.Rejected == nil) {
			t.Fatalf("the document holds %+v", parse)
		}
		for i, err := range errs {
			won := (i%2 == 0) == (parse.Confirmed != nil)
			if won != (err == nil) || !won && !errors.Is(err, lifecycle.ErrUndeliverable) {
				t.Errorf("decision %d: %v, while %+v stands", i, err, parse)
			}
		}
	}
}

// Catches a store that is away which is taken for a document that is not there, and answers that come only after all have waited in turn.
func TestStoreIsAway(t *testing.T) {
	t.Parallel()
	silent := servicetest.Listen(t) // takes connections and says nothing
	defer silent.Close()
	for name, address := range map[string]string{"down": servicetest.FreeAddress(t), "silent": silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := resultdoc.Open(fmt.Sprintf("mongodb://%s/framerun?directConnection=true", address))
			must(t, err)
			t.Cleanup(func() { d.Close(t.Context()) })
			began := time.Now()
			errs := d.Send(t.Context(), []lifecycle.Announcement{decided("a", 1, lifecycle.WasConfirmed), decided("b", 1, lifecycle.WasRejected)})
			for _, err := range errs {
				if err == nil || known(err) {
					t.Errorf("it is told %v", err)
				}
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("that took %s", took)
			}
			if err := d.Ping(t.Context()); err == nil {
				t.Error("it says that it is well")
			}
		})
	}
}

// Catches an address that is repeated in an error, password and all, and one that is found out to be unusable only later.
func TestBadAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "localhost", "http://hunter2@localhost", "mongodb://", "mongodb://u:hunter2@:0/x", "mongodb://u:hunter2@host/x?w=-1", "mongodb://u:hunter2@host:port"} {
		if _, err := resultdoc.Open(address); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
