package fuzz

import (
	"fmt"
	"strings"
)

// readHeaders are the conditions and preferences of a reader.
func readHeaders(g *generator, e *entry) []Field {
	var h []Field
	if g.chance(30) {
		h = append(h, Field{"If-None-Match", g.condition(e)})
	}
	if g.chance(10) {
		h = append(h, Field{"Prefer", pick(g, []string{"wait=0", "wait", "wait=", "wait=-1", "wait=1.5", "wait=99999999999999999999", "respond-async",
			"wait=x, wait=3", `wait="0"`, ",,;", "WAIT=0;a=b", "\xff", strings.Repeat("a,", 500)})})
	}
	if g.chance(2) {
		h = append(h, Field{"Accept", pick(g, []string{"text/event-stream", "application/json, text/event-stream;q=0.5", "TEXT/EVENT-STREAM"})})
		h = append(h, Field{"Last-Event-ID", pick(g, []string{"", "x", strings.Trim(e.etag(), `"`), "\xff", strings.Repeat("9", 2000),
			"1", "2", "3", "1.step", "2.step", fmt.Sprint(e.lines), fmt.Sprint(e.lines, ".step"), "-1", "01"})})
	}
	if g.IntN(2000) == 0 {
		h = append(h, Field{"If-None-Match", e.etag()}, Field{"Prefer", "wait=1"})
	}
	return h
}

// condition is an If-None-Match: the version that was last told, an older or a newer one, or what is none.
func (g *generator) condition(e *entry) string {
	etag := e.etag()
	return pick(g, []string{etag, etag, "W/" + etag, `"x", ` + etag, etag + `, "y"`, "*", " * ", `"*"`, "*, *", strings.Trim(etag, `"`),
		etag[:len(etag)-2] + `"`,
		fmt.Sprintf(`"%s.9223372036854775807"`, e.id), fmt.Sprintf(`"%s.-1"`, e.id), fmt.Sprintf(`"%s.0"`, e.id), `""`, `"`, "", ",,,", "W/", `W/"`,
		"\xff", `"\"`, strings.Repeat(`"a",`, 800) + etag, fmt.Sprintf(`"%s.99999999999999999999"`, e.id), strings.ToUpper(etag), "null"})
}

func createHeaders(g *generator, _ *entry) []Field {
	if !g.chance(10) {
		return nil
	}
	if !g.chance(20) { // now and then the last one comes again, with another body
		g.keys++
	}
	return []Field{{"Idempotency-Key", fmt.Sprintf("key-%d", g.keys)}}
}

func preflightHeaders(g *generator, _ *entry) []Field {
	return []Field{{"Origin", pick(g, []string{"null", "https://www.figma.com", "\xff"})},
		{"Access-Control-Request-Method", pick(g, []string{"GET", "POST", "DELETE", "BREW", " "})},
		{"Access-Control-Request-Headers", "authorization, content-type"}}
}

// garnish adds a header that must change nothing, or be refused in good order.
func (g *generator) garnish(d *draft) {
	d.headers = append(d.headers, pick(g, []func() Field{
		func() Field {
			return Field{"X-Request-Id", pick(g, []string{"good-id.1_A", "", "a b", strings.Repeat("x", 65), "\xff", "é", "a,b", "<x>"})}
		},
		func() Field { return Field{"traceparent", pick(g, traceparents)} },
		func() Field {
			return Field{"Accept", pick(g, []string{"*/*", "text/html", "", "application/xml;q=x", "\xff", "a/b/c"})}
		},
		func() Field { return Field{"Origin", pick(g, []string{"null", "https://evil.example", "\xff"})} },
		func() Field { return Field{"Accept-Encoding", "gzip, br"} },
		func() Field { return Field{"X-HTTP-Method-Override", "DELETE"} },
		func() Field { return Field{"X-Forwarded-For", "127.0.0.1"} },
		func() Field { return Field{"Cookie", strings.Repeat("a=b; ", 300)} },
		func() Field { return Field{"Expect", pick(g, []string{"100-continue", "200-ok"})} },
		func() Field {
			return Field{"Connection", pick(g, []string{"close", "keep-alive", "Upgrade", "Authorization"})}
		},
		func() Field { return Field{"Upgrade", "h2c"} },
		func() Field { return Field{"X-Big", strings.Repeat("b", 1+g.IntN(9000))} },
		func() Field {
			return Field{"Idempotency-Key", pick(g, []string{"", " ", "\xff", strings.Repeat("k", 300), "a,b", "key"})}
		},
		func() Field { return Field{"Range", "bytes=0-1"} },
		func() Field { return Field{"If-Match", "*"} },
		func() Field { return Field{"If-Modified-Since", "Mon, 01 Jan 2035 00:00:00 GMT"} },
	})())
}

var traceparents = []string{
	"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff",
	"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-the-future-brings", "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-\xff",
	"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
	"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "", "-", "00-", strings.Repeat("0", 5000), "\x80",
	"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-00",
}

// contents are headers that say what the body is: one value each, or none, or several.
var contents = [][]Field{
	{}, {{"Content-Type", ""}}, {{"Content-Type", "text/plain"}}, {{"Content-Type", "application/json; charset=utf-8"}},
	{{"Content-Type", "application/JSON"}},
	{{"Content-Type", "application/json; charset=latin1"}}, {{"Content-Type", "application/json;"}}, {{"Content-Type", "application/json; a=b"}},
	{{"Content-Type", "application/json"}, {"Content-Type", "application/json"}}, {{"Content-Type", "application/problem+json"}},
	{{"Content-Type", "\xff"}},
	{{"Content-Type", "application/x-www-form-urlencoded"}}, {{"Content-Type", "multipart/form-data; boundary=x"}},
	{{"Content-Type", "application/json, text/plain"}},
	{{"Content-Type", "application/json"}, {"Content-Encoding", "gzip"}}, {{"Content-Type", "application/json"}, {"Content-Encoding", "identity"}},
	{{"Content-Type", "application/json; charset=\"UTF-8\""}}, {{"Content-Type", "application/json; charset=utf-8; charset=utf-8"}},
}
