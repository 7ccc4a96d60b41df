package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ETag is the strong entity tag of a run: its id and its version, which is its updated_at. It is the same for every caller.
func ETag(id string, version time.Time) string {
	return `"` + id + "." + strconv.FormatInt(version.UnixMicro(), 10) + `"`
}

// Unchanged reports whether If-None-Match names etag, so that the answer is 304. As RFC 9110 §13.1.2 wants for this header,
// weak tags match strong ones, and `*` matches anything. What cannot be read matches nothing.
func Unchanged(r *http.Request, etag string) bool {
	tags := seen(r)
	return slices.Contains(tags, "*") || slices.Contains(tags, etag)
}

// NewestSeen is the newest version of the run that If-None-Match names; zero when it names none. The client has been there: it must
// not be shown anything older.
func NewestSeen(r *http.Request, id string) (newest time.Time) {
	for _, tag := range seen(r) {
		digits, ok := strings.CutPrefix(tag, `"`+id+".")
		micros, err := strconv.ParseInt(strings.TrimSuffix(digits, `"`), 10, 64)
		if version := time.UnixMicro(micros); ok && err == nil && version.After(newest) {
			newest = version
		}
	}
	return newest
}

// seen lists the entity tags of If-None-Match without their weakness marks, up to the first thing that is none.
func seen(r *http.Request) []string {
	var tags []string
	rest := strings.Join(r.Header.Values("If-None-Match"), ",")
	if strings.Trim(rest, " \t") == "*" {
		return []string{"*"}
	}
	for rest = strings.TrimLeft(rest, " \t,"); rest != ""; rest = strings.TrimLeft(rest, " \t,") {
		rest = strings.TrimPrefix(rest, "W/")
		if !strings.HasPrefix(rest, `"`) {
			break
		}
		end := strings.IndexByte(rest[1:], '"')
		if end < 0 {
			break
		}
		tags = append(tags, rest[:end+2])
		rest = rest[end+2:]
	}
	return tags
}
