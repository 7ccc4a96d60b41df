// Package figma gives Figma's identifiers the one form in which the suite stores and compares them.
//
// A designer's plugin sends what Figma's plugin API calls a node id, 12:34; a person pastes what stands in a link,
// 12-34, or the whole link. If both were stored as they came, one frame could carry two open runs. So each identifier
// passes through here once, on its way in, and is compared byte for byte ever after.
//
// The errors are clauses that a client may read: they name what was sent, never more than about a hundred characters of
// it, with control characters quoted.
package figma

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"unicode/utf8"
)

// maxLength is the width of the columns that hold identifiers, in code points.
const maxLength = 255

// A node id is one a:b pair, or the path of an instance's sublayer: I, then a pair for each instance on the way down.
// A half is digits, perhaps negative; in the dashed form -1--2 is therefore -1:-2 and nothing else.
var (
	colonForm = regexp.MustCompile(`^I?-?[0-9]+:-?[0-9]+(;-?[0-9]+:-?[0-9]+)*$`)
	dashForm  = regexp.MustCompile(`^I?-?[0-9]+--?[0-9]+(;-?[0-9]+--?[0-9]+)*$`)
	dashPair  = regexp.MustCompile(`(-?[0-9]+)-(-?[0-9]+)`)
)

// NodeID returns the canonical form of a node id: pairs with colons, as Figma's plugin API writes them. It takes that
// form and the dashed one of links, but no mixture of both, and nothing around it, not even a space.
//
// Digits stay as they are, of any number and with leading zeros. Figma itself writes none, and to declare 07 and 7 the
// same node would be to match loosely.
func NodeID(s string) (string, error) {
	if link, ok := ParseURL(s); ok {
		return "", fmt.Errorf("a Figma URL is not a node id: %s", link.found())
	}
	if s == "" {
		return "", errors.New("a node id must not be empty")
	}
	if n := utf8.RuneCountInString(s); n > maxLength {
		return "", fmt.Errorf("a node id has at most %d characters, not %d", maxLength, n)
	}
	id, ok := canonical(s)
	if !ok {
		return "", fmt.Errorf("%s is not a Figma node id, which looks like 12:34 or I5:6;7:8", quote(s, 60))
	}
	return id, nil
}

// canonical is NodeID without its reasons.
func canonical(s string) (string, bool) {
	switch {
	case len(s) > maxLength: // every character of a node id is one byte
		return "", false
	case colonForm.MatchString(s):
		return s, true
	case dashForm.MatchString(s):
		return dashPair.ReplaceAllString(s, "$1:$2"), true
	}
	return "", false
}

// quote shows at most limit characters of s between quotes; what is not plainly visible is escaped.
func quote(s string, limit int) string {
	for i := range s {
		if limit == 0 {
			s = s[:i] + "…"
			break
		}
		limit--
	}
	return strconv.Quote(s)
}
