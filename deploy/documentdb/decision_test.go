package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
)

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
	of := func(attempt int) func(string) bson.D { return func(id string) bson.D { return parsed(id, attempt) } }
	nobody := func(string) bson.D { return nil }
	const yes, no = lifecycle.WasConfirmed, lifecycle.WasRejected
	for name, c := range map[string]struct {
		doc     func(id string) bson.D
		attempt int
		what    lifecycle.What
		age     time.Duration // of the decision
		want    error
		cause   string
	}{
		"no document yet":        {nobody, 1, yes, 0, lifecycle.ErrTooEarly, "no document"},
		"no document for a day":  {nobody, 1, yes, 25 * time.Hour, lifecycle.ErrUndeliverable, "no document"},
		"an older attempt":       {of(1), 2, no, 0, lifecycle.ErrTooEarly, "attempt 1"},
		"a newer attempt":        {of(3), 2, yes, 0, lifecycle.ErrOutdated, "attempt 3"},
		"no attempt":             {func(id string) bson.D { return bson.D{{Key: "_id", Value: id}} }, 1, yes, 0, lifecycle.ErrUndeliverable, "no attempt"},
		"a parse that is a text": {func(id string) bson.D { return with(id, "parse", "done") }, 1, yes, 0, lifecycle.ErrUndeliverable, "no room"},
		"not a decision":         {of(1), 1, lifecycle.WasPlaced, 0, lifecycle.ErrUndeliverable, "placed"},
		"both decisions": {func(id string) bson.D {
			return with(id, "parse", bson.D{{Key: "confirmed", Value: true}, {Key: "rejected", Value: true}})
		}, 1, yes, 0, lifecycle.ErrUndeliverable, "both"},
		"a rejection that the plugin has noted": {func(id string) bson.D {
			return with(id, "parse", bson.D{{Key: "rejected", Value: "by the plugin"}})
		}, 1, no, 0, nil, ""},
	} {
		id := fresh()
		if doc := c.doc(id); doc != nil {
			s.put(t, doc)
		}
		before, a := s.text(t, id), decided(id, c.attempt, c.what)
		a.Event.At = a.Event.At.Add(-c.age)
		err := s.tell(t, a)
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
