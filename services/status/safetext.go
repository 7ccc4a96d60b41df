package main

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxMessage  = 1000 // code points of a failure's text
	maxProgress = 200
)

// generic is said where nothing better is known, or where what is known is not fit for a client.
const generic = "The generation failed. Please try again; if it fails again, contact support with the run's id."

// sentences are the error codes that workers agree on with the suite, and what a client is told for each.
var sentences = map[string]string{
	"source_not_found":    "The frame could not be found in the Figma file. It may have been moved or deleted.",
	"source_unreadable":   "The frame could not be read. Check that the file is shared with the integration.",
	"source_too_large":    "The frame is too large to be generated in one run. Try a smaller part of it.",
	"source_empty":        "The frame holds nothing that could be generated from.",
	"unsupported_content": "The frame holds content that is not supported yet.",
	"content_policy":      "The request was declined by the content policy.",
	"model_unavailable":   "The generation model is not available at the moment. Please try again later.",
	"model_overloaded":    "The generation model is busy at the moment. Please try again in a few minutes.",
	"quota_exceeded":      "The organization's generation quota is used up.",
	"timeout":             "The generation took too long and was stopped. Please try again.",
	"invalid_result":      "The generated result did not pass its checks. Please try again.",
	"undeliverable":       "The request could not be handed to a worker. Please start the generation again.",
	"internal":            generic,
}

// failureMessage is what a client is told about a failure: the sentence of a known code, else the worker's own text if it is fit,
// else the generic sentence. It is never empty.
func failureMessage(code, text string) string {
	if sentence, ok := sentences[code]; ok {
		return sentence
	}
	if clean, ok := safeText(text, maxMessage); ok && clean != "" {
		return clean
	}
	return generic
}

// unfit finds what never leaves: credentials, addresses with credentials, places inside the machines, stack traces, SQL. A text
// that holds any of it is not shown at all, for a half of it may be as bad as the whole.
var unfit = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`(AKIA|ASIA|AGPA|AIDA|AROA|ANPA)[A-Z0-9]{12,}`, `\bAIza[\w-]{20,}`, // cloud key ids
	`\barn:[a-z0-9-]*:`,             // ARNs
	`[a-z][a-z0-9+.-]*://[^\s/@]*@`, // URLs with credentials
	`\b(postgres(ql)?|mysql|mongodb(\+srv)?|redis|amqp|nats|s3|gs|file)://`, // addresses of inner parts
	`x-(amz|goog)-[a-z]`, `[?&](awsaccesskeyid|signature|sig|[a-z_-]*token)[^=\s]*=`, // signed links
	`\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}`,                            // authorization headers
	`\beyJ[a-z0-9_-]{5,}\.[a-z0-9_-]+`,                                  // tokens
	`\b(whsec|sk|pk|ghp|gho|ghs|xox[a-z]|glpat|figd)[_-][a-z0-9_-]{8,}`, // secrets by their prefixes
	`-----BEGIN`, // keys in PEM
	`(password|passwd|pwd|secret|(api|access|account|private)[_-]?key|credential)\w*[\\"'\s]*[=:]`, `token\w*[\\"'\s]*=`, // assignments
	`[a-z0-9/+]{40,}`,                                  // what is as long as a secret access key
	`(^|[^\pL\pN_/])(/[\pL\pN_.@~+-]+){2,}`, `~/[\w.]`, // places on a machine
	`\b[a-z]:\\`, `\\\\[\w.-]+\\`, // the same on Windows
	`traceback \(most recent`, `\bgoroutine \d+ \[`, `\b(panic|runtime error):`, `\.(go|py|js|ts|java|rb|rs|cs|php):\d+`, // stack traces
	`\bfile "[^"]*", line \d+`, `\bat [\w$.<>]+ ?\([^)]*:\d+`, `\bexception in thread`,
	`\bselect\b.+\bfrom\b`, `\binsert\s+into\b`, `\bupdate\b.+\bset\b`, `\bdelete\s+from\b`, `\b(pq|sqlstate)\b`, // SQL
	`\bviolates\b.+\bconstraint\b`, `\brelation "`, `\bsyntax error at or near\b`, // what PostgreSQL says
	`\b(10|127|169\.254|192\.168|172\.(1[6-9]|2\d|3[01]))(\.\d{1,3}){2,3}\b`, // inner hosts
	`\blocalhost\b`, `\b[\w-]+\.(internal|local|svc|amazonaws)\b`,
}, `|`))

// safeText makes a worker's text fit for a client: valid, without control characters, of at most max code points. It reports false,
// and returns nothing, for a text that holds what a client must not see.
func safeText(text string, max int) (string, bool) {
	clean := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	clean = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r) {
			return -1 // invisible: bidirectional overrides, joiners, private use
		}
		return r
	}, clean)
	if unfit.MatchString(shorten(clean, 4*max)) { // far enough beyond what is shown to know what was cut in two
		return "", false
	}
	return shorten(clean, max), true
}

func shorten(text string, max int) string {
	if utf8.RuneCountInString(text) <= max {
		return text
	}
	return string([]rune(text)[:max-1]) + "…"
}
