package auth

import (
	"context"
	"errors"
	"testing"
	"time"
)

// users is the platform's "user" table, and how often it was asked.
type users struct {
	known map[string]bool
	fault error
	asked int
}

func (u *users) has(_ context.Context, subject string) (bool, error) {
	u.asked++
	return u.known[subject], u.fault
}

func TestCaller(t *testing.T) {
	p := newPool()
	table := &users{known: map[string]bool{subject: true}}
	people := &People{Tokens: p.tokens(t), Known: table.has}
	good := bearing(p.token(nil))
	for range 3 {
		got, err := people.Caller(good)
		if err != nil || got.Subject != subject {
			t.Fatalf("got %v, %v", got, err)
		}
	}
	if table.asked != 1 {
		t.Errorf("asked %d times within a minute, want once", table.asked)
	}
	table.known[subject] = false
	p.pass(time.Minute)
	_, err := people.Caller(good)
	if _, ok := errors.AsType[*ForbiddenError](err); !ok {
		t.Errorf("a minute after the removal: %v, want *ForbiddenError", err)
	}
}

func TestStrangerIsForbiddenUntilAdded(t *testing.T) {
	p := newPool()
	table := &users{known: map[string]bool{}}
	people := &People{Tokens: p.tokens(t), Known: table.has}
	good := bearing(p.token(nil))
	got, err := people.Caller(good)
	if refusal, ok := errors.AsType[*ForbiddenError](err); !ok || refusal.Reason == "" || got != (Person{}) {
		t.Fatalf("got %v, %v, want nobody and *ForbiddenError", got, err)
	}
	table.known[subject] = true
	if _, err := people.Caller(good); err != nil {
		t.Errorf("just added: %v; a no must not be remembered", err)
	}
}

func TestCallerFaults(t *testing.T) {
	p := newPool()
	broken := errors.New("connection reset")
	table := &users{known: map[string]bool{subject: true}, fault: broken}
	people := &People{Tokens: p.tokens(t), Known: table.has}

	_, err := people.Caller(request("Basic eDp5"))
	mustRefuse(t, err)
	if table.asked != 0 {
		t.Error("the table was asked about somebody without a token")
	}
	if _, err := people.Caller(bearing(p.token(nil))); !errors.Is(err, broken) {
		t.Errorf("got %v, want the table's error", err)
	}
	table.fault = nil
	if _, err := people.Caller(bearing(p.token(nil))); err != nil {
		t.Errorf("the table is back: %v", err)
	}
}
