package auth

import (
	"bytes"
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestKeyRotation(t *testing.T) {
	p := newPool()
	tokens := p.tokens(t)
	rotated := bearing(sign256(secondKey(), p.header(members{"kid": "second"}), p.claims(nil)))
	if _, err := tokens.Person(rotated); err == nil {
		t.Fatal("the key is not published yet")
	}
	p.change(func() { p.set["second"] = secondKey() })
	if _, err := tokens.Person(rotated); err == nil {
		t.Fatal("fetched again within five minutes")
	}
	p.pass(5 * time.Minute)
	if _, err := tokens.Person(rotated); err != nil {
		t.Errorf("after five minutes: %v", err)
	}
	if got := p.count(); got != 3 {
		t.Errorf("%d fetches, want the first and two for the unknown kid", got)
	}
}

func TestUnknownKeysCauseOneFetch(t *testing.T) {
	p := newPool()
	tokens := p.tokens(t)
	if _, err := tokens.Person(bearing(p.token(nil))); err != nil {
		t.Fatal(err)
	}
	forged := encode([]byte(p.claims(nil))) + "." + encode(make([]byte, 256))
	var group sync.WaitGroup
	for worker := range 10 {
		group.Go(func() {
			for i := range 1000 {
				header := p.header(members{"kid": fmt.Sprintf("unknown-%d-%d", worker, i)})
				_, err := tokens.Person(bearing(encode([]byte(header)) + "." + forged))
				if _, ok := errors.AsType[*UnauthenticatedError](err); !ok {
					t.Errorf("got %v", err)
					return
				}
			}
		})
	}
	group.Wait()
	if got := p.count(); got != 2 {
		t.Errorf("%d fetches for 10,000 unknown kids, want the first and one more", got)
	}
}

func TestKnownKeysOutliveTheEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool()
		var log bytes.Buffer
		config := p.config()
		config.Log = slog.New(slog.NewTextHandler(&log, nil))
		tokens, err := NewTokens(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		p.change(func() { p.down = true })
		for range 50 {
			p.pass(25 * time.Hour)
			if _, err := tokens.Person(bearing(p.token(nil))); err != nil {
				t.Fatalf("known kid: %v", err)
			}
			synctest.Wait()
			_, err := tokens.Person(bearing(p.headed(members{"kid": "third"})))
			mustRefuse(t, err) // not ErrKeysUnavailable: a set is there
		}
		if !strings.Contains(log.String(), "connection refused") {
			t.Errorf("nobody was told that the endpoint is down: %q", log.String())
		}
	})
}

func TestStartWhileTheEndpointIsDown(t *testing.T) {
	p := newPool()
	p.down = true
	tokens := p.tokens(t)
	good := bearing(p.token(nil))
	for range 100 {
		if _, err := tokens.Person(good); !errors.Is(err, ErrKeysUnavailable) || !strings.Contains(err.Error(), "refused") {
			t.Fatalf("got %v, want ErrKeysUnavailable and why", err)
		}
	}
	if got := p.count(); got != 1 {
		t.Errorf("%d fetches within a second", got)
	}
	_, err := tokens.Person(bearing("junk"))
	mustRefuse(t, err) // what no key could mend is refused, not put off

	p.change(func() { p.down = false })
	p.pass(time.Second)
	if _, err := tokens.Person(good); err != nil {
		t.Errorf("the endpoint is back: %v", err)
	}
}

func TestBadKeySetsAreNotTaken(t *testing.T) {
	encryption, other, weak := jwk("first", firstKey()), jwk("first", firstKey()), jwk("first", weakKey())
	encryption["use"], other["alg"] = "enc", "RS512"
	keysOf := func(keys ...any) string { return text(map[string]any{"keys": keys}) }
	for name, answer := range map[string]func() (int, string){
		"server error":           func() (int, string) { return 503, keySet(map[string]*rsa.PrivateKey{"first": firstKey()}) },
		"a page in HTML":         func() (int, string) { return 200, "<html>maintenance</html>" },
		"nothing":                func() (int, string) { return 200, "" },
		"no keys":                func() (int, string) { return 200, `{"keys":[]}` },
		"another object":         func() (int, string) { return 200, `{}` },
		"more than a megabyte":   func() (int, string) { return 200, strings.Repeat(" ", 1<<20) + keysOf(jwk("first", firstKey())) },
		"a key for encryption":   func() (int, string) { return 200, keysOf(encryption) },
		"a key for RS512":        func() (int, string) { return 200, keysOf(other) },
		"a key of 1024 bits":     func() (int, string) { return 200, keysOf(weak) },
		"a key without a kid":    func() (int, string) { return 200, keysOf(jwk("", firstKey())) },
		"a key without modulus":  func() (int, string) { return 200, `{"keys":[{"kty":"RSA","kid":"first","e":"AQAB"}]}` },
		"a secret, not a key":    func() (int, string) { return 200, `{"keys":[{"kty":"oct","kid":"first","k":"c2VjcmV0"}]}` },
		"something else as keys": func() (int, string) { return 200, `{"keys":[1,"x",null]}` },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool()
			p.answer = answer
			if _, err := p.tokens(t).Person(bearing(p.token(nil))); !errors.Is(err, ErrKeysUnavailable) {
				t.Errorf("as the first set: %v, want ErrKeysUnavailable", err)
			}

			p.answer = nil
			tokens := p.tokens(t)
			if _, err := tokens.Person(bearing(p.token(nil))); err != nil {
				t.Fatal(err)
			}
			p.change(func() { p.answer = answer })
			_, err := tokens.Person(bearing(p.headed(members{"kid": "third"}))) // causes the fetch
			mustRefuse(t, err)
			if _, err := tokens.Person(bearing(p.token(nil))); err != nil {
				t.Errorf("as a later set: %v, want the earlier one to go on", err)
			}
		})
	}
}

func TestStrangeKeysAreBesideThePoint(t *testing.T) {
	p := newPool()
	p.answer = func() (int, string) {
		return 200, text(map[string]any{"extra": 1, "keys": []any{
			map[string]any{"kty": "OKP", "crv": "Ed448", "kid": "new", "x": "AA"}, 7, jwk("first", firstKey()),
		}})
	}
	if _, err := p.tokens(t).Person(bearing(p.token(nil))); err != nil {
		t.Error(err)
	}
}

// A key that the pool took back must stop counting, also for tokens that were verified with it before.
func TestWithdrawnKeyIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool()
		tokens := p.tokens(t)
		long := bearing(p.token(members{"exp": p.now().Add(48 * time.Hour).Unix()}))
		if _, err := tokens.Person(long); err != nil {
			t.Fatal(err)
		}
		p.change(func() { p.set = map[string]*rsa.PrivateKey{"second": secondKey()} })
		p.pass(time.Hour)
		if _, err := tokens.Person(long); err != nil {
			t.Fatalf("the set is renewed in the background, nobody waits: %v", err)
		}
		synctest.Wait()
		_, err := tokens.Person(long)
		mustRefuse(t, err)
	})
}

// A caller who hangs up while keys are fetched is let go; the fetch goes on for the others.
func TestHangingUpWhileKeysAreFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool()
		p.gate = make(chan struct{})
		tokens := p.tokens(t)
		gone, hangUp := context.WithCancel(t.Context())
		var impatient, patient error
		var group sync.WaitGroup
		group.Go(func() { _, impatient = tokens.Person(bearing(p.token(nil)).WithContext(gone)) })
		group.Go(func() { _, patient = tokens.Person(bearing(p.token(nil))) })
		synctest.Wait()
		hangUp()
		synctest.Wait()
		close(p.gate)
		group.Wait()
		if !errors.Is(impatient, context.Canceled) || patient != nil {
			t.Errorf("who hung up got %v, who waited got %v", impatient, patient)
		}
		if got := p.count(); got != 1 {
			t.Errorf("%d fetches, want one for both", got)
		}
	})
}

// Who joins a fetch that began before the key was published is not refused for it.
func TestJoiningAnOlderFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool()
		older := make(chan struct{})
		p.gate = older
		p.answer = func() (int, string) { return 200, keySet(map[string]*rsa.PrivateKey{"first": firstKey()}) }
		tokens := p.tokens(t)
		var got error
		var group sync.WaitGroup
		group.Go(func() {
			_, got = tokens.Person(bearing(sign256(secondKey(), p.header(members{"kid": "second"}), p.claims(nil))))
		})
		synctest.Wait()
		p.change(func() {
			p.gate = nil
			p.set["second"] = secondKey()
			first := p.answer
			p.answer = func() (int, string) { p.answer = nil; return first() }
		})
		close(older)
		group.Wait()
		if got != nil {
			t.Error(got)
		}
	})
}

// A hung endpoint costs five seconds at most, and the end of ctx ends a fetch at once. synctest fails if a goroutine is left.
func TestFetchesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool()
		p.gate = make(chan struct{})
		tokens := p.tokens(t)
		begun := time.Now()
		if _, err := tokens.Person(bearing(p.token(nil))); !errors.Is(err, ErrKeysUnavailable) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(begun); took != fetchTimeout {
			t.Errorf("took %v", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := newPool()
		p.gate = make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		tokens, err := NewTokens(ctx, p.config())
		if err != nil {
			t.Fatal(err)
		}
		stop()
		if _, err := tokens.Person(bearing(p.token(nil))); !errors.Is(err, ErrKeysUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: %v, want ErrKeysUnavailable because of it", err)
		}
	})
}
