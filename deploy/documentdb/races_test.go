package main

import (
	"errors"
	"sync"
	"testing"

	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/resultdoc"
)

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
