package figma

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// FileKey returns s, the key of a Figma file or branch, if it can be one. A key is opaque: 22 or 24 characters today, digits
// only in old files, and Figma promises nothing, so only what is certainly no key is refused: nothing or blanks, a URL,
// more than 255 code points, and what PostgreSQL cannot hold (NUL, broken UTF-8).
func FileKey(s string) (string, error) {
	if link, ok := ParseURL(s); ok {
		return "", fmt.Errorf("a Figma URL is not a file key: %s", link.found())
	}
	switch {
	case strings.TrimSpace(s) == "":
		return "", errors.New("a file key must not be empty or blank")
	case isURL(s):
		return "", errors.New("a URL is not a file key, and no file key was found in this one")
	case !utf8.ValidString(s), strings.ContainsRune(s, 0):
		return "", errors.New("a file key must not contain NUL or broken UTF-8")
	}
	if n := utf8.RuneCountInString(s); n > maxLength {
		return "", fmt.Errorf("a file key has at most %d characters, not %d", maxLength, n)
	}
	return s, nil
}

// isURL reports whether s is a URL of any kind, or one of Figma's without its scheme.
func isURL(s string) bool {
	_, _, figmas := split(s)
	return figmas || strings.Contains(s, "://")
}
