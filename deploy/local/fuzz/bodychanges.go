package fuzz

import (
	"bytes"
	"strings"
)

// changeBody breaks, bends or dresses up the body: a member of it, or its bytes.
func (g *generator) changeBody(d *draft) {
	if len(d.members) == 0 || g.chance(20) {
		d.rewrite = append(d.rewrite, pick(g, rewrites))
		return
	}
	at := g.IntN(len(d.members))
	m := d.members[at]
	switch g.IntN(10) {
	case 0:
		d.members = append(d.members[:at:at], d.members[at+1:]...)
	case 1:
		d.members = append(d.members, m)
	case 2:
		d.members[at].name = g.otherName(m.name)
	case 3:
		d.put(pick(g, owned), pick(g, []string{"1", `"x"`, "null", "true", `"processing"`}))
	default:
		d.members[at].value = g.otherValue(d, m)
	}
}

// owned are members that the server alone decides about.
var owned = []string{"status", "phase", "attempt", "id", "wf2desId", "organizationId", "projectId", "createdBy", "updatedBy", "createdAt",
	"deletedAt", "triggerSurface", "resultUrl", "score", "flagCount", "errorMessage", "job_id", "code2wf_id", "progress", "manifest", "materializedAt", "ſtatuſ", "Status",
	"__proto__", ""}

// otherName is the name in another case, another spelling, or broken.
func (g *generator) otherName(name string) string {
	plain := strings.Trim(name, `"`)
	if plain == "" {
		return `"edge"`
	}
	return pick(g, []string{quoted(strings.ToUpper(plain)), quoted(strings.ToLower(plain)), quoted(strings.ReplaceAll(plain, "s", "ſ")),
		quoted(strings.ReplaceAll(plain, "_", "")),
		quoted(plain + " "), quoted(plain + `\u0000`), plain, "'" + plain + "'", quoted(`\u` + "0066" + plain),
		quoted(strings.Repeat(plain, 1000)), "1", `""`, quoted("\xff" + plain),
		quoted(plain[:1] + `\u00` + "69" + plain[1:]), quoted(`\ud800`)})
}

// otherValue is a value for this member that is at or beyond an edge.
func (g *generator) otherValue(d *draft, m member) string {
	name := strings.Trim(m.name, `"`)
	switch {
	case g.chance(10):
		if other := pick(g, others); name != "figmaFileKey" || !strings.HasPrefix(other, `"`) {
			return other
		}
		return `""`
	case g.chance(10):
		return quoted(pick(g, brokenTexts))
	case name == "attempt" || name == "flag_count" || name == "score":
		return pick(g, numbers)
	case name == "progress":
		return `{"percent":` + pick(g, numbers) + `,"message":` + quoted(pick(g, failures)) + pick(g, []string{"}", `,"x":1}`, ""})
	case name == "manifest":
		return `{"error_code":` + pick(g, others) + `,"error_message":` + quoted(longText(g)) + pick(g, []string{"}", `,"x":1}`, ""})
	case name == "wfNodeId" || name == "placementTarget":
		return quoted(pick(g, nodes))
	case name == "edge" || name == "decision" || name == "feedbackStatus" || name == "autoConfirm" || name == "event":
		return quoted(pick(g, words))
	case name == "result_url":
		return quoted(artifactKey(g, strings.TrimSuffix(strings.Trim(m.value, `"`), "1/result.json")))
	case name == "job_id" || name == "code2wf_id" || name == "pageImportId":
		return quoted(g.otherID(strings.Trim(m.value, `"`)))
	}
	return g.otherText(d, name)
}

// otherText is a long text or an odd one. A file key stays one that only this worker sends.
func (g *generator) otherText(d *draft, name string) string {
	inside := pick(g, odd)
	if g.chance(40) {
		inside = longText(g)
	}
	if name != "figmaFileKey" {
		return quoted(inside)
	}
	if g.chance(20) {
		return pick(g, []string{`""`, `" "`, quoted(nodes[len(nodes)-5]), `"\u2003"`, `"http://x/y"`})
	}
	return quoted(g.oddFileKey(d.tenant, inside))
}

// rewrites work on the bytes of a whole body.
var rewrites = []func(*generator, []byte) []byte{
	func(_ *generator, b []byte) []byte { return append([]byte("\uFEFF"), b...) },
	func(_ *generator, b []byte) []byte { return append(b, b...) },
	func(_ *generator, b []byte) []byte { return append(append([]byte("["), b...), ']') },
	func(g *generator, b []byte) []byte {
		return append(b, pick(g, []string{"x", "}", " \n\t\r", "\x00", "//", ",", "null", "\ufeff"})...)
	},
	func(g *generator, b []byte) []byte { return b[:g.IntN(len(b)+1)] },
	func(g *generator, b []byte) []byte { return flip(g, b) },
	func(g *generator, b []byte) []byte { return append(bytes.Repeat([]byte(" "), g.IntN(3000)), b...) },
	func(g *generator, _ []byte) []byte {
		return []byte(pick(g, []string{"", "null", "[]", "{}", "true", `""`, "1", " ", "{", "[{}]", "\x00", "{}{}", "a=b&c=d", "<xml/>"}))
	},
	func(g *generator, _ []byte) []byte {
		return []byte(strings.Repeat(pick(g, []string{"[", `{"a":`}), 40+g.IntN(5000)))
	},
	func(_ *generator, b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"`), []byte("'")) },
	func(g *generator, b []byte) []byte {
		return bytes.ReplaceAll(b, []byte(":"), []byte(pick(g, []string{" : ", "\n:\t", "=", "::", "\u00a0:"})))
	},
	func(_ *generator, b []byte) []byte { return bytes.Replace(b, []byte("{"), []byte("{/* comment */"), 1) },
	func(_ *generator, b []byte) []byte { return bytes.Replace(b, []byte("}"), []byte(",}"), 1) },
	func(g *generator, b []byte) []byte {
		deep := strings.Repeat(`{"a":`, 20+g.IntN(20))
		return bytes.Replace(b, []byte("}"), []byte(`,"deep":`+deep+"1"+strings.Repeat("}", len(deep)/5)+"}"), 1)
	},
}

// flip turns one bit over.
func flip(g *generator, b []byte) []byte {
	if len(b) > 0 {
		b[g.IntN(len(b))] ^= byte(1 << g.IntN(8))
	}
	return b
}
