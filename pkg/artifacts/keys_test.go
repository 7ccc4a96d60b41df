package artifacts

import (
	"strings"
	"testing"

	"framerun.dev/pkg/lifecycle"
)

var run = lifecycle.Ref{Kind: lifecycle.WF2Des, ID: "01980000-0000-7000-8000-000000000001"}

const prefix = "wf2des/01980000-0000-7000-8000-000000000001/"

// Catches a prefix that two attempts, runs or kinds share.
func TestPrefix(t *testing.T) {
	t.Parallel()
	if got := RunPrefix(run); got != prefix {
		t.Errorf("RunPrefix is %q", got)
	}
	for attempt, want := range map[int]string{1: prefix + "1/", 12: prefix + "12/"} {
		if got := Prefix(run, attempt); got != want || CheckKey(run, got+"spec.json") != "" {
			t.Errorf("Prefix is %q, want %q", got, want)
		}
	}
	other := lifecycle.Ref{Kind: lifecycle.Code2WF, ID: run.ID}
	if CheckKey(other, Prefix(run, 1)+"x") == "" {
		t.Error("a run of the other kind may name this one's artifact")
	}
}

// Catches a key by which a client would be led to another run's artifact, or that S3 and a browser read in two ways; and a proper one
// that is refused.
func TestCheckKey(t *testing.T) {
	t.Parallel()
	fill := func(c string, n int) string { return prefix + strings.Repeat(c, n-len(prefix)) }
	for key, proper := range map[string]bool{
		prefix + "1/spec.json": true, prefix + "spec.json": true, prefix + "1/結果 final (2).json": true, prefix + "a%2e%2e": true, prefix + "a.b.c": true,
		prefix + "emoji/👩‍🚀.png": true, fill("x", 500): true, fill("🚀", 500): true, prefix + "?a=b&c#d": true,

		"": false, prefix: false, "/" + prefix + "x": false, strings.TrimSuffix(prefix, "/"): false, "x" + prefix + "x": false,
		strings.TrimSuffix(prefix, "/") + "0/x": false, strings.ToUpper(prefix) + "x": false, "wf2des/../" + prefix + "x": false,
		prefix + "..": false, prefix + "../x": false, prefix + "a/../../x": false, prefix + "a..b": false, prefix + "/x": false, prefix + "a//x": false,
		prefix + `a\..\x`: false, prefix + "a\x00": false, prefix + "a\n": false, prefix + "a\u007f": false, prefix + "a\u0085": false,
		prefix + "./x": false, prefix + "1/.": false, prefix + "1/": false, prefix + "1/x ": false, prefix + ".x": true,
		"s3://bucket/" + prefix + "x": false, "https://bucket.example/" + prefix + "x": false, fill("x", 501): false, fill("🚀", 501): false,
	} {
		if wrong := CheckKey(run, key); (wrong == "") != proper {
			t.Errorf("%q: %q", key, wrong)
		}
	}
}
