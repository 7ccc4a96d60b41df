package store_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"framerun.dev/migrations/platform"
	"framerun.dev/pkg/lifecycle"
	"framerun.dev/pkg/store"
)

var theKey = store.Key{Text: "a key", Fingerprint: []byte("a request")}

func (w *world) once(t *testing.T, c store.Creation, key store.Key, wantReplayed bool) lifecycle.Run {
	t.Helper()
	run, replayed, err := w.CreateOnce(t.Context(), c, key)
	if err != nil {
		t.Fatal(err)
	}
	if replayed != wantReplayed {
		t.Errorf("replayed is %t, want %t", replayed, wantReplayed)
	}
	return run
}

// Catches a key that leads to a second run, or to the run as it was instead of as it is.
func TestTheSameKeyIsTheSameRun(t *testing.T) {
	t.Parallel()
	for _, kind := range lifecycle.Kinds {
		w := open(t)
		key := store.Key{Text: string(kind), Fingerprint: []byte("x")}
		run := w.once(t, w.creation(kind), key, false)
		stage := map[lifecycle.Kind]string{lifecycle.WF2Des: "parse", lifecycle.Code2WF: "generate"}[kind]
		w.mustHaveBeginnings(t, run, string(run.State), stage)
		failed := w.apply(t, command(lifecycle.Fail, run)).Run
		w.unchanged(t, "a replay", func() {
			if again := w.once(t, w.creation(kind), key, true); again.ID != run.ID || again.State != failed.State {
				t.Errorf("%s %s, want %s failed", again.ID, again.State, run.ID)
			}
		})
	}
}

// Catches a key that opens somebody else's run, and one that hides a different request.
func TestAKeyBelongsToItsCallerAndRequest(t *testing.T) {
	t.Parallel()
	w := open(t)
	run := w.once(t, w.creation(lifecycle.WF2Des), theKey, false)
	w.unchanged(t, "another request with the key", func() {
		_, _, err := w.CreateOnce(t.Context(), w.creation(lifecycle.WF2Des), store.Key{Text: theKey.Text, Fingerprint: []byte("another")})
		if !errors.Is(err, lifecycle.ErrKeyReused) {
			t.Errorf("%v, want ErrKeyReused", err)
		}
	})
	other := w.creation(lifecycle.WF2Des)
	other.By.Name = platform.UserAPI
	if got := w.once(t, other, theKey, false); got.ID == run.ID {
		t.Error("another caller got the first one's run")
	}
	abroad := w.creation(lifecycle.WF2Des)
	abroad.Run.Tenant = lifecycle.Tenant{OrganizationID: platform.OtherOrganizationID, ProjectID: platform.OtherOrganizationProjectID}
	if got := w.once(t, abroad, theKey, false); got.ID == run.ID {
		t.Error("another organization got the first one's run")
	}
}

// Catches a replay that holds one connection while it waits for another: enough of them at once would wait for each other.
func TestManyReplaysAtTheSameTime(t *testing.T) {
	t.Parallel()
	w := open(t)
	keys := make([]store.Key, 60)
	for i := range keys {
		keys[i] = store.Key{Text: string(rune('A' + i)), Fingerprint: []byte("x")}
		w.once(t, w.creation(lifecycle.Code2WF), keys[i], false)
	}
	var asking sync.WaitGroup
	for _, key := range keys {
		c := w.creation(lifecycle.Code2WF)
		asking.Go(func() {
			if _, replayed, err := w.CreateOnce(t.Context(), c, key); err != nil || !replayed {
				t.Errorf("replayed is %t, error %v", replayed, err)
			}
		})
	}
	asking.Wait()
}

// Catches two runs for one key, and a caller left without a word.
func TestManyAskOnceAtTheSameTime(t *testing.T) {
	t.Parallel()
	w := open(t)
	var mu sync.Mutex
	var made, all []string
	var asking sync.WaitGroup
	for range 40 {
		asking.Go(func() {
			run, replayed, err := w.CreateOnce(t.Context(), w.creation(lifecycle.Code2WF), theKey)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, lifecycle.ErrKeyInFlight):
			case err != nil:
				t.Error(err)
			case !replayed:
				made = append(made, run.ID)
				fallthrough
			default:
				all = append(all, run.ID)
			}
		})
	}
	asking.Wait()
	slices.Sort(all)
	if len(made) != 1 || len(slices.Compact(all)) != 1 {
		t.Errorf("made %v, told of %v; want one run", made, all)
	}
	if n := value[int](t, w, `SELECT count(*) FROM code2wf`); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// Catches a key that is lost to a creation that failed.
func TestAFailedCreationLeavesItsKeyFree(t *testing.T) {
	t.Parallel()
	w := open(t)
	standing := w.create(t, w.creation(lifecycle.WF2Des))
	c := w.creation(lifecycle.WF2Des)
	c.Run.WFNodeID = standing.WFNodeID
	w.unchanged(t, "a creation in whose way a run stands", func() {
		_, _, err := w.CreateOnce(t.Context(), c, theKey)
		if open, ok := errors.AsType[*lifecycle.OpenRunError](err); !ok || open.Existing.ID != standing.ID {
			t.Errorf("%v, want the open run", err)
		}
		stranger := c
		stranger.By.Name = "nobody"
		if _, _, err := w.CreateOnce(t.Context(), stranger, theKey); !errors.Is(err, lifecycle.ErrUnknownUser) {
			t.Errorf("%v, want ErrUnknownUser", err)
		}
	})
	w.apply(t, command(lifecycle.Cancel, standing))
	w.once(t, c, theKey, false)
}

// Catches keys that are kept for ever, or let go too early.
func TestAKeyStandsForADay(t *testing.T) {
	t.Parallel()
	w := open(t)
	first := w.once(t, w.creation(lifecycle.Code2WF), theKey, false)
	w.exec(t, `UPDATE idempotency_key SET created_at = now() - interval '23 hours 59 minutes'`)
	w.once(t, w.creation(lifecycle.Code2WF), theKey, true)
	w.exec(t, `UPDATE idempotency_key SET created_at = now() - interval '24 hours 1 second'`)
	if second := w.once(t, w.creation(lifecycle.Code2WF), theKey, false); second.ID == first.ID {
		t.Error("a key that is past its time still leads to its run")
	}
	w.once(t, w.creation(lifecycle.Code2WF), store.Key{Text: "old", Fingerprint: []byte("x")}, false)
	w.exec(t, `UPDATE idempotency_key SET created_at = now() - interval '25 hours' WHERE key = 'old'`)
	for _, want := range []int{1, 0} {
		if n, err := w.ForgetKeys(t.Context(), 10); err != nil || n != want {
			t.Errorf("forgot %d keys, %v; want %d", n, err, want)
		}
	}
	w.once(t, w.creation(lifecycle.Code2WF), theKey, true)
}

// The line breaks around the COMMIT. Catches a key without its run, a run without its key, and a second try that makes a second run.
func TestCreateOnceCut(t *testing.T) {
	t.Parallel()
	w := open(t)
	l := lineTo(t, w.url)
	s := openStore(t, l.url, store.Options{Pool: 2})
	for _, arrives := range []bool{true, false} {
		key := store.Key{Text: map[bool]string{true: "arrives", false: "is lost"}[arrives], Fingerprint: []byte("x")}
		l.follow(cut{word: "COMMIT", arrives: arrives})
		if _, _, err := s.CreateOnce(t.Context(), w.creation(lifecycle.Code2WF), key); !errors.Is(err, lifecycle.ErrOutcomeUnknown) {
			t.Errorf("COMMIT %s: %v, want ErrOutcomeUnknown", key.Text, err)
		}
		l.follow(cut{})
		until(t, "the broken session is over", func() bool {
			_, replayed, err := s.CreateOnce(t.Context(), w.creation(lifecycle.Code2WF), key)
			if errors.Is(err, lifecycle.ErrKeyInFlight) {
				return false
			}
			if err != nil || replayed != arrives {
				t.Errorf("COMMIT %s, asked again: replayed %t, %v", key.Text, replayed, err)
			}
			return true
		})
	}
	if n := value[int](t, w, `SELECT count(*) FROM code2wf`); n != 2 {
		t.Errorf("%d runs for two keys", n)
	}
	w.mustBeClean(t, s)
}

// Many who ask again at once need no more than the connections that there are. Catches a replay that holds one and waits for another.
func TestReplaysDoNotDrownThePool(t *testing.T) {
	t.Parallel()
	w := open(t)
	run := w.once(t, w.creation(lifecycle.Code2WF), theKey, false)
	s := openStore(t, w.url, store.Options{Pool: 2})
	var asking sync.WaitGroup
	for range 32 {
		asking.Go(func() {
			got, replayed, err := s.CreateOnce(t.Context(), w.creation(lifecycle.Code2WF), theKey)
			if err != nil || !replayed || got.ID != run.ID {
				t.Errorf("%s, replayed %t, %v", got.ID, replayed, err)
			}
		})
	}
	asking.Wait()
}
