package main

import (
	"strings"
	"testing"

	"framerun.dev/pkg/servicetest"
)

// Catches a token that is printed, one that is said to be good and is not, and a good one that is refused.
func TestTokenExplain(t *testing.T) {
	t.Parallel()
	w := servicetest.New(t)
	issuer := w.Environment(t, nil)["COGNITO_ISSUER"]
	good := w.Owner.Token
	for name, c := range map[string]struct {
		token string
		code  int
		says  string
	}{
		"good":            {good, exitDone, "good: signed by a key of " + issuer},
		"as a header":     {"Bearer " + good + "\n", exitDone, "good"},
		"expired":         {w.Expired.Token, exitRefused, "refused: the token has expired"},
		"another content": {strings.Replace(good, ".ey", ".eyA", 1), exitUsage, ""},
		"a signature of another token": {good[:strings.LastIndexByte(good, '.')] + w.Colleague.Token[strings.LastIndexByte(w.Colleague.Token, '.'):],
			exitRefused, "signature does not fit"},
		"nothing":  {"", exitUsage, ""},
		"no token": {"hunter2", exitUsage, ""},
	} {
		got := ctl(t, c.token, "token", "explain", "--issuer", issuer).want(t, c.code)
		if !strings.Contains(got.out, c.says) {
			t.Errorf("%s: %s", name, got.out)
		}
		for part := range strings.SplitSeq(strings.TrimPrefix(c.token, "Bearer "), ".") {
			if len(part) > 5 && strings.Contains(got.out+got.err, part) {
				t.Errorf("%s: the token is printed", name)
			}
		}
	}
	explained := ctl(t, good, "token", "explain", "--issuer", issuer, "-o", "json").want(t, exitDone).json(t)
	if claims := explained["claims"].(map[string]any); explained["accepted"] != true || claims["sub"] != w.Owner.Subject {
		t.Errorf("explained as %v", explained)
	}
	unchecked := ctl(t, good, "token", "explain", "--nats-url", "nats://x", "-o", "json").want(t, exitDone).json(t)
	if unchecked["accepted"] != false || unchecked["signatureChecked"] != false {
		t.Errorf("without a user pool: %v", unchecked)
	}
	ctl(t, w.Expired.Token, "token", "explain", "--nats-url", "nats://x").want(t, exitRefused)
	ctl(t, good, "token", "explain", "--issuer", "http://"+servicetest.FreeAddress(t), "--timeout", "2s").want(t, exitUnavailable)
}
