// Package app is for what every service's main needs around its own work: configuration from the environment, a logger, the
// ops port and a life from start to a clean end.
//
// A main reads its Env, makes its parts and calls Run, which returns when the process has been told to stop and everything
// that was under way is done.
package app

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Env reads configuration and remembers everything that is wrong with it, so that one failed start names all of it. A variable
// that is set but empty counts as not set, as in a Kubernetes manifest. No value is ever repeated in a problem: it may be a
// secret in the wrong place.
type Env struct {
	lookup   func(name string) (string, bool)
	problems []error
}

// NewEnv reads through lookup: os.LookupEnv in a main, a map in a test.
func NewEnv(lookup func(name string) (string, bool)) *Env { return &Env{lookup: lookup} }

// Err is nil if everything could be read, and otherwise one line for each problem: the name, what is wrong, what would be right.
func (e *Env) Err() error {
	if len(e.problems) == 0 {
		return nil
	}
	return fmt.Errorf("the configuration cannot be used:\n%w", errors.Join(e.problems...))
}

// Refuse notes a problem that only the caller can see, for example a secret that its user will not take.
func (e *Env) Refuse(name, problem string) {
	e.problems = append(e.problems, fmt.Errorf("%s: %s", name, problem))
}

// String is the variable as it stands, or fallback.
func (e *Env) String(name, fallback string) string {
	if value, ok := e.lookup(name); ok && value != "" {
		return value
	}
	return fallback
}

// Required is the variable as it stands; there must be one.
func (e *Env) Required(name string) string {
	value := e.String(name, "")
	if value == "" {
		e.Refuse(name, "is required and not set")
	}
	return value
}

// Listen is an address to listen on, such as `:8080` or `127.0.0.1:8080`; there must be one.
func (e *Env) Listen(name string) string {
	address := e.Required(name)
	if address == "" {
		return ""
	}
	_, port, err := net.SplitHostPort(address)
	if n, convErr := strconv.ParseUint(port, 10, 16); err != nil || convErr != nil || n == 0 {
		e.Refuse(name, "must be an address to listen on, such as :8080 or 127.0.0.1:8080")
	}
	return address
}

// Int is a whole number between low and high, both included.
func (e *Env) Int(name string, fallback, low, high int) int {
	text := e.String(name, "")
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		e.Refuse(name, fmt.Sprintf("must be a whole number between %d and %d", low, high))
		return fallback
	}
	return n
}

// Duration is a span of time with a unit, never negative.
func (e *Env) Duration(name string, fallback time.Duration) time.Duration {
	text := e.String(name, "")
	if text == "" {
		return fallback
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		e.Refuse(name, "must be a duration with a unit, such as 500ms, 15s or 2m")
		return fallback
	}
	return d
}

// Bool is true or false.
func (e *Env) Bool(name string, fallback bool) bool {
	switch e.String(name, strconv.FormatBool(fallback)) {
	case "true":
		return true
	case "false":
		return false
	}
	e.Refuse(name, "must be true or false")
	return fallback
}

// URL is an absolute URL of one of schemes (http and https if none are given), or fallback.
func (e *Env) URL(name, fallback string, schemes ...string) string {
	text := e.String(name, "")
	if text == "" {
		return fallback
	}
	if len(schemes) == 0 {
		schemes = []string{"http", "https"}
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
		e.Refuse(name, "must be an absolute URL beginning with "+strings.Join(schemes, ":// or ")+"://")
		return fallback
	}
	return text
}

// RequiredURL is URL for a variable that must be set.
func (e *Env) RequiredURL(name string, schemes ...string) string {
	if e.Required(name) == "" {
		return ""
	}
	return e.URL(name, "", schemes...)
}

// List is comma-separated words, without the blanks around them.
func (e *Env) List(name string, fallback ...string) []string {
	text := e.String(name, "")
	if text == "" {
		return fallback
	}
	words := strings.Split(text, ",")
	for i, word := range words {
		words[i] = strings.TrimSpace(word)
	}
	if slices.Contains(words, "") {
		e.Refuse(name, "must be words with single commas between them, such as one,two")
		return fallback
	}
	return words
}

// Map is comma-separated pairs, such as `a=1,b=2`; nil if the variable is not set. A key may stand once.
func (e *Env) Map(name string) map[string]string {
	var pairs map[string]string
	for _, word := range e.List(name) {
		key, value, ok := strings.Cut(word, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if _, twice := pairs[key]; !ok || twice || key == "" || value == "" {
			e.Refuse(name, "must be pairs with commas between them and no key twice, such as one=1,two=2")
			return nil
		}
		if pairs == nil {
			pairs = map[string]string{}
		}
		pairs[key] = value
	}
	return pairs
}

// Level is how much is logged: debug, info, warn or error.
func (e *Env) Level(name string, fallback slog.Level) slog.Level {
	level := fallback
	if text := e.String(name, ""); text != "" && level.UnmarshalText([]byte(text)) != nil {
		e.Refuse(name, "must be debug, info, warn or error")
		return fallback
	}
	return level
}
