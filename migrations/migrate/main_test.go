package main

import (
	"io"
	"strings"
	"testing"
)

// Each mistake gets a sentence that says what to do, and no sentence gives a password away.
func TestMistakesAreNamed(t *testing.T) {
	for _, c := range []struct {
		name    string
		args    []string
		address string
		want    string
	}{
		{"nothing set", nil, "", "DATABASE_URL is not set"},
		{"not a URL", nil, "postgres://u:sesame%zz@127.0.0.1/x", "percent-encoded"},
		{"a space in the password", nil, "postgres://u:ses ame@127.0.0.1/sesame", "percent-encoded"},
		{"nobody listens", nil, "postgres://u:sesame@127.0.0.1:1/x?sslmode=disable", "reaching the database"},
		{"a word too many", []string{"up"}, "postgres://u:sesame@127.0.0.1:1/x", `"up"`},
		{"an unknown flag", []string{"-down"}, "", "-down"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := run(t.Context(), c.args, c.address, io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v; want one with %q", err, c.want)
			}
			if strings.Contains(err.Error(), "sesame") {
				t.Errorf("the password is in %q", err)
			}
		})
	}
}
