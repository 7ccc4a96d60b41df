package app_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"framerun.dev/pkg/app"
)

// environment is a lookup over a map.
func environment(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
}

func TestEnvReadsWhatIsSet(t *testing.T) {
	e := app.NewEnv(environment(map[string]string{
		"TEXT": " kept as it is ", "COUNT": "8", "WAIT": "1500ms", "ON": "true", "DB": "postgres://u:p@h/db?sslmode=disable",
		"WORDS": "a, b,c", "PAIRS": "plugin-id=plugin, api-id = api", "LEVEL": "debug", "EMPTY": "",
	}))
	got := []any{
		e.String("TEXT", ""), e.Required("TEXT"), e.Int("COUNT", 1, 0, 10), e.Duration("WAIT", 0), e.Bool("ON", false),
		e.RequiredURL("DB", "postgres", "postgresql"), e.List("WORDS"), e.Map("PAIRS"), e.Level("LEVEL", slog.LevelInfo),
		e.String("EMPTY", "fallback"),
	}
	want := []any{
		" kept as it is ", " kept as it is ", 8, 1500 * time.Millisecond, true,
		"postgres://u:p@h/db?sslmode=disable", []string{"a", "b", "c"},
		map[string]string{"plugin-id": "plugin", "api-id": "api"}, slog.LevelDebug,
		"fallback",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := e.Err(); err != nil {
		t.Error(err)
	}
}

func TestEnvFallsBackOnWhatIsNotSet(t *testing.T) {
	e := app.NewEnv(environment(nil))
	got := []any{
		e.String("A", "x"), e.Int("A", 3, 0, 9), e.Duration("A", time.Second), e.Bool("A", true), e.URL("A", ""),
		e.List("A", "x", "y"), e.Map("A"), e.Level("A", slog.LevelWarn),
	}
	want := []any{"x", 3, time.Second, true, "", []string{"x", "y"}, map[string]string(nil), slog.LevelWarn}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := e.Err(); err != nil {
		t.Error(err)
	}
}

// Every bad value here is the same secret, so that one search shows whether any refusal repeats it.
func TestEnvNamesAllProblemsAtOnceAndNoValue(t *testing.T) {
	const secret = "hunter2,=,"
	names := []string{"COUNT", "WAIT", "ON", "DB", "DB2", "WORDS", "PAIRS", "LEVEL"}
	values := map[string]string{"LOW": "-1", "TWICE": "a=1,a=2", "NEGATIVE": "-5s", "RELATIVE": "/path", "SCHEME": "ftp://host"}
	for _, name := range names {
		values[name] = secret
	}
	e := app.NewEnv(environment(values))
	e.Required("MISSING")
	e.RequiredURL("MISSING_URL")
	e.Int("COUNT", 0, 0, 9)
	e.Int("LOW", 0, 0, 9)
	e.Duration("WAIT", 0)
	e.Duration("NEGATIVE", 0)
	e.Bool("ON", false)
	e.URL("DB", "", "postgres")
	e.RequiredURL("DB2")
	e.URL("RELATIVE", "")
	e.URL("SCHEME", "")
	e.List("WORDS")
	e.Map("PAIRS")
	e.Map("TWICE")
	e.Level("LEVEL", slog.LevelInfo)
	e.Refuse("OWN", "is not to my liking")

	err := e.Err()
	if err == nil {
		t.Fatal("nothing was refused")
	}
	lines := strings.Split(err.Error(), "\n")[1:]
	for _, name := range append(names, "MISSING", "MISSING_URL", "LOW", "NEGATIVE", "RELATIVE", "SCHEME", "TWICE", "OWN") {
		if !strings.Contains(err.Error(), "\n"+name+": ") {
			t.Errorf("%s is not named in:\n%s", name, err)
		}
	}
	if want := len(values) + 3; len(lines) != want {
		t.Errorf("%d lines for %d problems:\n%s", len(lines), want, err)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a value was repeated:\n%s", err)
	}
}

func TestEnvListen(t *testing.T) {
	for address, good := range map[string]bool{
		":8080": true, "127.0.0.1:8080": true, "[::1]:8080": true, "host:65535": true,
		"": false, "8080": false, "abc": false, ":": false, ":0": false, ":99999": false, ":http": false, "::1:80": false,
	} {
		e := app.NewEnv(func(string) (string, bool) { return address, true })
		if got := e.Listen("LISTEN"); (e.Err() == nil) != good || good && got != address {
			t.Errorf("%q: %q, %v", address, got, e.Err())
		}
	}
}
