package figma

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Link is what a Figma URL points to. Only FileKey is always there.
type Link struct {
	FileKey   string // the file, or the main file of a branch
	BranchKey string // set if the link leads into a branch
	NodeID    string // canonical; empty if the link names none, or several, or one that cannot be read
}

// Key is the file key to work with: a branch is a file of its own, with its own key.
func (l Link) Key() string {
	if l.BranchKey != "" {
		return l.BranchKey
	}
	return l.FileKey
}

// found says what to send in place of the link. The limits leave every id seen in real files whole.
func (l Link) found() string {
	key := quote(l.Key(), 40)
	if l.NodeID == "" {
		return fmt.Sprintf("this one has the file key %s and names no single node", key)
	}
	return fmt.Sprintf("this one has the file key %s and the node id %s", key, quote(l.NodeID, 80))
}

// editors are the first path segments after which a file key stands. Others (community, files, team) look alike, but
// the numbers in them are no file keys.
var editors = []string{"file", "design", "proto", "board", "slides", "deck", "make", "buzz", "site"}

var keyForm = regexp.MustCompile(`^[0-9A-Za-z_-]{1,255}$`)

// ParseURL reads a link to a Figma file as people paste it: from the address bar, the desktop app (figma://), a share
// dialog or an embed. It reports false for everything else, Figma's pages that are no files included.
//
// It takes links apart by hand since the title in them may hold what net/url refuses.
func ParseURL(s string) (Link, bool) {
	path, query, ok := split(s)
	if !ok {
		return Link{}, false
	}
	if path[0] == "embed" {
		return embedded(query)
	}
	if len(path) < 2 || !slices.Contains(editors, path[0]) || !keyForm.MatchString(path[1]) {
		return Link{}, false
	}
	link := Link{FileKey: path[1], NodeID: nodeIn(query)}
	if len(path) > 3 && path[2] == "branch" && keyForm.MatchString(path[3]) {
		link.BranchKey = path[3]
	}
	return link, true
}

// split returns the path segments and the raw query of a URL on one of Figma's hosts.
func split(s string) (path []string, query string, ok bool) {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "#")
	s, query, _ = strings.Cut(s, "?")
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		scheme, rest = "https", s
	}
	switch strings.ToLower(scheme) {
	case "figma": // the desktop app's links have no host
		return strings.Split(rest, "/"), query, true
	case "http", "https":
		host, rest, _ := strings.Cut(rest, "/")
		host = strings.ToLower(host)
		return strings.Split(rest, "/"), query, host == "figma.com" || strings.HasSuffix(host, ".figma.com")
	}
	return nil, "", false
}

// embedded reads the link that an embed carries in its url parameter. An embed within an embed is nobody's link.
func embedded(query string) (Link, bool) {
	_, inner, _ := strings.Cut("&"+query, "&url=")
	value, _, _ := strings.Cut(inner, "&")
	if !strings.Contains(value, "://") { // else people left it unencoded, and all that follows belongs to it
		plain, err := url.QueryUnescape(value)
		if err != nil {
			return Link{}, false
		}
		inner = plain
	}
	if path, _, ok := split(inner); !ok || path[0] == "embed" {
		return Link{}, false
	}
	return ParseURL(inner)
}

// nodeIn returns the node that a raw query names, and nothing if there is any doubt which one.
func nodeIn(query string) string {
	var node string
	for pair := range strings.SplitSeq(query, "&") {
		value, ok := strings.CutPrefix(pair, "node-id=")
		if !ok {
			continue
		}
		plain, _ := url.QueryUnescape(value) // what cannot be decoded is empty, and that is no node id
		id, ok := canonical(plain)
		if !ok || node != "" && node != id {
			return ""
		}
		node = id
	}
	return node
}
