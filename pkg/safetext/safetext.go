// Package safetext is for texts of strangers that a client may read: it lets prose through, and nothing that could be a credential, an
// address, a place inside the machines, a stack trace or a statement.
package safetext

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Clean makes text fit to be shown: valid UTF-8 on one line, without control or invisible characters, of at most max code points. It
// reports false, and returns nothing, for a text that holds what a client must not see, or nothing that can be seen. A text is never
// shown in part, for a half of it may be as bad as the whole.
func Clean(text string, max int) (string, bool) {
	visible := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	visible = strings.TrimSpace(strings.Map(dropInvisible, visible))
	looked := folded(shorten(visible, 4*max)) // far enough beyond what is shown to know what was cut in two
	if !strings.ContainsFunc(looked, unicode.IsGraphic) || unfit.MatchString(looked) || hasOddWord(looked) {
		return "", false
	}
	return shorten(visible, max), true
}

func shorten(text string, max int) string {
	if utf8.RuneCountInString(text) <= max {
		return text
	}
	return string([]rune(text)[:max-1]) + "…"
}

// dropInvisible removes what cannot be seen and could hide something: format characters, private use, variation selectors, fillers.
func dropInvisible(r rune) rune {
	switch {
	case unicode.In(r, unicode.Cf, unicode.Co, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return -1
	case r == '\u2800': // the empty Braille pattern
		return -1
	}
	return r
}

// folded is text as it looks: full-width and styled letters are plain ones, and every slash is a slash.
func folded(text string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '\u2044', '\u2215', '\u29F8': // fraction, division and big solidus
			return '/'
		}
		return r
	}, norm.NFKC.String(text))
}

// unfit finds what never leaves, in folded text.
var unfit = regexp.MustCompile(`(?i)` + strings.Join([]string{
	"[=@\\\\<>{}$|^~`]", `-{3,}`, `%[0-9a-f]{2}`, // what prose does without: assignments, addresses, code, keys in PEM
	`arn:`, `://`, `[^\d\s"'(][.:][a-z0-9]`, `\d[.:][a-z]`, `(^|\s)[.:][a-z]`, // names of resources, addresses, files and hosts
	`(^|[^\pL\pN])/`, `/([^\pL\pN]|$)`, `\S*/\S*/\S*/`, // places on a machine; "icon/24" and "Button/Primary" are names
	`(^|[^\pL])(var|etc|usr|home|root|tmp|opt|srv|proc|mnt|dev|lib|src|app|bin|node_modules)/`,
	`\b(10|127|169\.254|192\.168|172\.(1[6-9]|2\d|3[01]))(\.\d{1,3}){2,3}\b`, `\blocalhost\b`, // inner hosts
	`(password|passwd|pwd|secret|credential|cookie|token|(api|access|account|private)[ _-]?key)s?\w*["'\s]*:`, // what is told after its name
	`\b(bearer|basic)\s+\S{8,}`, `\b(whsec|sk|pk|rk|ghp|gho|ghs|glpat|figd|npm|hf|xox[a-z])[_-]\S{8,}`, // authorization headers, and secrets by their prefixes
	`\btraceback\b`, `\bgoroutine\b`, `\bpanic(ked)?\b`, `\bruntime error\b`, `\bstack trace\b`, `\bexception in\b`, `\bsegmentation fault\b`,
	`\bline \d+, in\b`, `", line \d+`, `\b0x[0-9a-f]{4,}`, // stack traces
	`\bselect\b.+\bfrom\b`, `\binsert\s+into\b`, `\bupdate\b.+\bset\b`, `\bdelete\s+from\b`, `\b(drop|truncate|alter|create)\s+(table|index|role|database|schema)\b`,
	`\b(pq|sqlstate|psql|postgres(ql)?)\b`, `\bpermission denied\b`, `\b(relation|column|constraint|table)\s+"`, `\bviolates\b`,
	`\bnull value in\b`, `\bduplicate key\b`, `\bsyntax error\b`, `\bdeadlock\b`, // statements, and what a database says
}, `|`))

// hasOddWord finds what looks like a key or a token, whatever its name: a long run of letters and digits mixed or a very long one, and
// letters of two alphabets that look alike side by side in one word.
func hasOddWord(text string) bool {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '+' && r != '/' }) {
		latin := strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(unicode.Latin, r) })
		if latin && strings.ContainsFunc(word, func(r rune) bool { return unicode.In(r, unicode.Cyrillic, unicode.Greek) }) {
			return true
		}
		for run := range strings.FieldsFuncSeq(word, func(r rune) bool { return r >= utf8.RuneSelf }) {
			if len(run) >= 20 && mixed(run) {
				return true
			}
			for part := range strings.SplitSeq(run, "/") {
				if len(part) >= 25 || len(part) >= 12 && mixed(part) {
					return true
				}
			}
		}
	}
	return false
}

// mixed reports whether letters stand among digits or signs.
func mixed(run string) bool {
	return strings.ContainsAny(run, "0123456789+") && strings.ContainsFunc(run, unicode.IsLetter)
}
