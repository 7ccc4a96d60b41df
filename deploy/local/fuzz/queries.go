package fuzz

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"net/url"
	"strings"
)

// listQuery asks, most of the time, for this worker's own file: who asks for everything makes PostgreSQL read everything.
func listQuery(g *generator, d *draft) string {
	if g.cursor.value != "" && g.chance(30) {
		return g.turnPage(d)
	}
	pairs := []string{"figmaFileKey=" + url.QueryEscape(g.fileKey(d.tenant))}
	if g.IntN(300) == 0 {
		pairs = nil
	}
	for range []int{0, 0, 0, 1, 1, 2, 3}[g.IntN(7)] {
		pairs = append(pairs, g.filter(d))
	}
	g.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	return strings.Join(pairs, "&")
}

func (g *generator) filter(d *draft) string {
	name := pick(g, []string{"status", "phase", "edge", "screenId", "materialized", "flagged", "createdAfter", "createdBefore", "limit",
		"limit", "limit", "cursor"})
	values := map[string][]string{
		"status": statuses, "phase": phases, "edge": {"wf2des", "des2wf"}, "screenId": {url.QueryEscape(canary(d.tenant.organization) + "🦊"),
			"x", "%00", "%ff"},
		"materialized": {"true", "false"}, "flagged": {"true", "false"}, "limit": {"1", "2", "3", "5", "100"}, "cursor": {"AAAA", ""},
		"createdAfter": times, "createdBefore": times,
	}
	if g.chance(80) {
		return name + "=" + pick(g, values[name])
	}
	return name + "=" + pick(g, queryValues)
}

var times = []string{"2020-01-01T00:00:00Z", "2090-01-01T00:00:00.123456789%2B09:00", "0001-01-01T00:00:00Z",
	"0001-01-01T00:00:00%2B23:59", "9999-12-31T23:59:59-23:59",
	"0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01", "now", "1e400", "2026-01-01T00:00:00+09:00"}

var queryValues = []string{"", "%", "%zz", "%00", "%ff", "%ed%a0%80", ";", "a;b", "%3B", "1%2B1", "0", "-1", "101", "1e2", "01", "+1",
	"9223372036854775808", "TRUE", "null",
	"%F0%9F%A6%8A", strings.Repeat("a", 256), strings.Repeat("%F0%9F%A6%8A", 255), strings.Repeat("a", 3000), "=", "==", "%26", "%E2%80%A8",
	"'", "%27%20OR%201=1", "*", "%5B%5D"}

// turnPage goes on from where a list ended, or from where nobody can have been.
func (g *generator) turnPage(d *draft) string {
	c := g.cursor
	d.path = strings.Split(strings.TrimPrefix(c.path, "/"), "/")
	for _, t := range g.people.tenants {
		if strings.HasPrefix(c.path, fmt.Sprintf("/v1/projects/%d/", t.project)) {
			d.tenant, d.auth = t, []string{"Bearer " + pick(g, t.tokens)}
		}
	}
	value := c.value
	if g.chance(60) {
		value = g.forge(value)
	}
	return c.query + "&cursor=" + value
}

// forge changes where a cursor stands, and leaves the digest of its filters as it is.
func (g *generator) forge(value string) string {
	raw, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || len(raw) < 32 {
		return value
	}
	switch g.IntN(4) {
	case 0:
		binary.BigEndian.PutUint64(raw[8:], pick(g, []uint64{0, 1, math.MaxUint64, math.MaxInt64, 1 << 63, 1<<63 + 1, g.Uint64(), 1 << 56,
			9224318016000000000}))
	case 1:
		raw[g.IntN(len(raw))] ^= byte(1 + g.IntN(255))
	case 2:
		raw = raw[:g.IntN(len(raw))]
	case 3:
		raw = append(raw, 0)
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// remember keeps the cursor of a page, to go on from.
func (g *generator) remember(r *Request, v *verdict) {
	if v.shape != aList || v.said.null("nextCursor") {
		return
	}
	_, query, _ := strings.Cut(r.Target, "?")
	var rest []string
	for pair := range strings.SplitSeq(query, "&") {
		if !strings.HasPrefix(pair, "cursor=") {
			rest = append(rest, pair)
		}
	}
	g.cursor = cursor{path: r.path(), query: strings.Join(rest, "&"), value: v.said.text("nextCursor")}
}
