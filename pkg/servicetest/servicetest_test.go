package servicetest

import (
	"errors"
	"maps"
	"net/http"
	"testing"

	"framerun.dev/pkg/auth"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// Catches principals who are not who they are said to be: every tenancy test would then prove nothing.
func TestPrincipals(t *testing.T) {
	t.Parallel()
	w := New(t)
	who := func(p Principal) (auth.Person, error) {
		r := http.Request{Header: http.Header{}}
		if p.Token != "" {
			r.Header.Set("Authorization", "Bearer "+p.Token)
		}
		return w.People.Caller(r.WithContext(t.Context()))
	}
	for _, p := range []Principal{w.Owner, w.Colleague, w.OtherProject} {
		if got, err := who(p); err != nil || got.Subject != p.Subject || got.OrganizationID != Tenant.OrganizationID {
			t.Errorf("%s is %+v, %v", p.Name, got, err)
		}
	}
	for _, p := range []Principal{w.OtherOrganization, w.Intruder} {
		if got, err := who(p); err != nil || got.OrganizationID == Tenant.OrganizationID {
			t.Errorf("%s is %+v, %v", p.Name, got, err)
		}
	}
	for _, p := range []Principal{w.Expired, w.Nobody} {
		if _, err := who(p); !isA[*auth.UnauthenticatedError](err) {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	if _, err := who(w.Unknown); !isA[*auth.ForbiddenError](err) {
		t.Errorf("unknown: %v", err)
	}
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// Catches a Content that misses a change, and runs that are not where In says.
func TestInAndContent(t *testing.T) {
	t.Parallel()
	w := New(t)
	seen := w.Content(t)
	for _, kind := range lifecycle.Kinds {
		for _, state := range StatesOf(kind) {
			run := w.In(t, kind, state)
			if len(w.Timeline(t, run.Ref)) == 0 || len(w.Outbox(t, run.Ref)) == 0 || w.Row(t, run.Ref)["id"] != run.ID {
				t.Errorf("a %s %s run is not in all tables", state, kind)
			}
			now := w.Content(t)
			if maps.Equal(now, seen) {
				t.Errorf("a new %s run is not seen", kind)
			}
			seen = now
		}
	}
	run := w.In(t, lifecycle.WF2Des, lifecycle.AwaitingConfirm, func(r *lifecycle.Run) { r.Edge = lifecycle.EdgeDes2WF })
	before := w.Content(t)
	w.SQL.MustExec(`UPDATE wf2des SET attempt = 2 WHERE id = $1`, run.ID)
	if maps.Equal(before, w.Content(t)) {
		t.Error("an UPDATE is not seen")
	}
}
