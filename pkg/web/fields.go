package web

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"framerun.dev/pkg/lifecycle"
)

// Fields checks the members of a body and remembers every problem, so that a caller hears of all of them at once. Members are
// pointers: nil stands for absent, which null is too. The zero Fields is ready for use.
type Fields struct{ problems []error }

// Refuse notes that field, a JSON pointer or a parameter's name, is not acceptable.
func (f *Fields) Refuse(field, reason string) {
	f.problems = append(f.problems, &lifecycle.InvalidError{Field: field, Reason: reason})
}

// Text checks a text of at most max code points, counted as PostgreSQL counts, and returns it untouched. A required text may be
// blank but not empty. An absent one is returned as "".
func (f *Fields) Text(field string, value *string, required bool, max int) string {
	switch {
	case value == nil && required:
		f.Refuse(field, "is required")
	case value == nil:
	case *value == "" && required:
		f.Refuse(field, "must not be empty")
	case strings.ContainsRune(*value, 0):
		f.Refuse(field, "must not hold the character NUL (U+0000)")
	case utf8.RuneCountInString(*value) > max:
		f.Refuse(field, fmt.Sprintf("is %d characters long; at most %d are allowed", utf8.RuneCountInString(*value), max))
	default:
		return *value
	}
	return ""
}

// Word checks that value is one of words. An absent one becomes fallback; without a fallback the member is required.
func Word[T ~string](f *Fields, field string, value *string, fallback T, words ...T) T {
	if value == nil {
		if fallback == "" {
			f.Refuse(field, "is required: "+oneOf(words))
		}
		return fallback
	}
	if !slices.Contains(words, T(*value)) {
		f.Refuse(field, "must be "+oneOf(words))
		return fallback
	}
	return T(*value)
}

// Number checks a whole number that is required and lies between low and high, both included.
func (f *Fields) Number(field string, value *int64, low, high int64) int64 {
	switch {
	case value == nil:
		f.Refuse(field, "is required")
	case *value < low || *value > high:
		f.Refuse(field, fmt.Sprintf("must be between %d and %d", low, high))
	default:
		return *value
	}
	return 0
}

// Err is nil if nothing was refused, and otherwise joins one *lifecycle.InvalidError for each problem.
func (f *Fields) Err() error { return errors.Join(f.problems...) }

func oneOf[T ~string](words []T) string {
	var b strings.Builder
	for i, word := range words {
		switch {
		case i > 0 && i == len(words)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(word))
	}
	return b.String()
}
