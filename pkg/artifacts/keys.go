// Package artifacts knows where a run's results lie in S3, and makes the links by which a plugin fetches them.
package artifacts

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"framerun.dev/pkg/lifecycle"
)

// MaxKey is the length of a result key in code points (seed: result_url varchar(500)).
const MaxKey = 500

// RunPrefix is the S3 prefix that belongs to run alone.
func RunPrefix(run lifecycle.Ref) string { return fmt.Sprintf("%s/%s/", run.Kind, run.ID) }

// Prefix is the S3 prefix where the artifacts of one attempt belong.
func Prefix(run lifecycle.Ref, attempt int) string {
	return fmt.Sprintf("%s%d/", RunPrefix(run), attempt)
}

// CheckKey says whether a worker may name key as run's result or failure artifact: an S3 key under the run's own prefix, so that no
// result of another run or tenant can ever be linked. It returns what is wrong, or "" if nothing is.
func CheckKey(run lifecycle.Ref, key string) (wrong string) {
	prefix := RunPrefix(run)
	switch {
	case utf8.RuneCountInString(key) > MaxKey:
		return fmt.Sprintf("has more than %d characters", MaxKey)
	case !strings.HasPrefix(key, prefix) || key == prefix:
		return "must be an S3 key under this run's own prefix, " + prefix
	case strings.Contains(key, ".."), strings.Contains(key, "//"), strings.Contains(key+"/", "/./"), strings.Contains(key, `\`):
		return `must not contain "..", "//", a segment "." or a backslash`
	case strings.HasSuffix(key, "/"), strings.TrimSpace(key) != key:
		return "must name an object, not a folder, and not end with a blank"
	case strings.ContainsFunc(key, unicode.IsControl):
		return "must not contain control characters"
	}
	return ""
}
