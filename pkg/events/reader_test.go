package events

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"framerun.dev/pkg/lifecycle"
	"github.com/google/go-cmp/cmp"
)

// read is what a reading hears, by run and line.
func read(t *testing.T, b *Bus, r Reading) []string {
	t.Helper()
	var heard []string
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := b.Read(ctx, r, func(e CloudEvent) error { heard = append(heard, e.ID); return nil }); err != nil || ctx.Err() != nil {
		t.Fatalf("%v, %v", err, ctx.Err())
	}
	return heard
}

// Catches a reader that misses, doubles or reorders events, hears those of another kind, does not end where the feed ends, or does not
// say that there is no feed.
func TestRead(t *testing.T) {
	t.Parallel()
	server := newNerve(t).start(t)
	b := server.connect(t)
	if err := b.Read(t.Context(), Reading{}, nil); !errors.Is(err, ErrNoFeed) {
		t.Errorf("without a feed: %v", err)
	}
	f := newFeed(t, b)
	var want []string
	for i := range 300 { // more than a consumer fetches at once
		mustSend(t, f, created(i))
		want = append(want, created(i).Event.Run.ID+"/1")
	}
	if diff := cmp.Diff(want, read(t, b, Reading{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if heard := read(t, b, Reading{Kind: lifecycle.Code2WF}); len(heard) > 0 {
		t.Errorf("of the other kind: %v", heard)
	}
	if heard := read(t, b, Reading{Since: time.Now().Add(time.Hour)}); len(heard) > 0 {
		t.Errorf("of the future: %v", heard)
	}
	failure := errors.New("enough")
	if err := b.Read(t.Context(), Reading{}, func(CloudEvent) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("the reader's own error: %v", err)
	}
}

// Catches a follower that hears nothing new, or does not end with its context.
func TestReadFollows(t *testing.T) {
	t.Parallel()
	b := newNerve(t).start(t).connect(t)
	f := newFeed(t, b)
	mustSend(t, f, created(1))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	heard := make(chan string, 10)
	ended := make(chan error, 1)
	go func() {
		ended <- b.Read(ctx, Reading{Follow: true}, func(e CloudEvent) error { heard <- e.ID; return nil })
	}()
	if first := <-heard; first != created(1).Event.Run.ID+"/1" {
		t.Errorf("first %s", first)
	}
	mustSend(t, f, cancelled(1))
	if second := <-heard; second != created(1).Event.Run.ID+"/2" {
		t.Errorf("then %s", second)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Catches a reader that waits for a server which is not there.
func TestReadWithoutNATS(t *testing.T) {
	t.Parallel()
	b, err := Connect(newNerve(t).url(), "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Read(t.Context(), Reading{}, nil); !errors.Is(err, lifecycle.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}
