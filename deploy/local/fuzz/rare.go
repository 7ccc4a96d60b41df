package fuzz

import (
	"bytes"
	"strings"
)

// sometimes does to a finished request what is costly or touches HTTP itself, and therefore seldom.
func (g *generator) sometimes(r *Request) {
	switch n := g.IntN(4000); {
	case n < 8:
		g.oversize(r)
	case n < 30:
		r.Chunked = len(r.Body) > 0
	case n < 50:
		pick(g, spoils)(r)
		r.wants = nil
	}
	if r.Raw && len(r.Body) > 2000 {
		r.Body = nil // net/http hangs up without reading it, and the answer may be lost
	}
}

// oversize sends more than anybody takes.
func (g *generator) oversize(r *Request) {
	if len(r.Body) == 0 {
		return
	}
	limit := 64 << 10
	if r.Service == "status" {
		limit = 256 << 10
	}
	r.Body = append(bytes.Repeat([]byte(" "), max(0, limit-g.IntN(2)*len(r.Body))), r.Body...)
	r.Chunked = g.chance(50)
	r.wants = nil
}

// spoils break the rules of HTTP itself: net/http may refuse these before anything of ours sees them.
var spoils = []func(*Request){
	func(r *Request) { r.add("X Bad Name", "x"); r.Raw = true },
	func(r *Request) { r.add("X-Control", "a\x00b"); r.Raw = true },
	func(r *Request) { r.add("X-Huge", strings.Repeat("h", 30<<10)); r.Raw = true },
	func(r *Request) { r.Method = "G@T"; r.Raw = true },
	func(r *Request) { r.Target = "http://other.example" + r.Target },
	func(r *Request) { r.Method, r.Target = "OPTIONS", "*" },
	func(r *Request) { r.Target = strings.ReplaceAll(r.Target, "/", "\\"); r.Raw = true },
	func(r *Request) { r.Target = "/" + r.Target },
	func(r *Request) { r.Target = r.Target + " x"; r.Raw = true },
	func(r *Request) { r.add("Host", "a"); r.add("Host", "b"); r.Raw = true },
	func(r *Request) { r.add("Host", "a b/c"); r.Raw = true },
	func(r *Request) { r.add("Content-Length", "x"); r.Raw = true },
	func(r *Request) { r.add("Transfer-Encoding", "gzip"); r.Raw = true },
	func(r *Request) { r.Method, r.Target = "CONNECT", "example.com:443"; r.Raw = true },
	func(r *Request) { r.Target = "/%"; r.Raw = true },
	func(r *Request) { r.Target += "?" + strings.Repeat("a", 15<<10); r.Raw = true },
}
