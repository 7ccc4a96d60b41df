package fuzz

import "strings"

// Values are raw JSON texts, for much of what has to be tried cannot be said by way of a Go value.

// odd are the insides of strings that must be kept exactly: all that Unicode allows and PostgreSQL can hold.
var odd = []string{
	" ", "  leading and trailing  ", `\t\n\r`, `\b\f`, `\u0001\u001f\u007f`, "\u0085\u200b\u200d\ufeff", "\u2028\u2029", `\u2028`,
	"\uffff\ufffe", `\uffff`, "\ufffd", "日本語の画面 ①", "🦊", "👩‍👩‍👧‍👦", `\ud83e\udd8a`, "e\u0301\u0301\u0301", "اللغة", "\u202eevil\u202c",
	`\"quoted\"`, `\\`, `\/`, "/",
	"'; DROP TABLE wf2des; --", `%s%d%n`, "<script>", "${jndi:x}", "../../etc/passwd", "{}", "null", "0", "a;b", "$1", "E'\\\\x00'",
	"\U0010ffff", "\ue000",
	"ß ſtatuſ İ", "%00", "\u0300", "ﷺ", "Z̸̨a̷l̷g̶o̴",
}

// brokenTexts are the insides of strings that are no JSON, or that PostgreSQL cannot hold.
var brokenTexts = []string{
	`\u0000`, `a\u0000b`, `\ud800`, `\udfff\ud800`, `\ud83e`, "\x80", "\xff\xfe", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x00",
	"\x01", "\n", "\x1f",
	`\x41`, `\u12`, `\`, `\'`, `"`, "",
}

// numbers are spelled as JSON or almost so, at the edges of what types hold.
var numbers = []string{
	"0", "-0", "1", "-1", "2", "1.0", "1e0", "1E+0", "10e-1", "0.5", "0.12345", "9.99995", "0.99995", "0.999949", "0.00005", "0.00004", "1.00001",
	"1e400", "-1e400", "1e-400", "2147483647", "2147483648", "4294967297", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
	"18446744073709551616", "123456789012345678901234567890", "0.1e1", "1e1", "100", "100.0001", "01", "+1", ".5", "1.", "0x1", "NaN",
	"Infinity", "-", "1_000",
	"0e0", "-0.0", "1e5000", "3", "99", "0.1", "0.25",
}

// others are values of the wrong type.
var others = []string{
	"null", "true", "false", "[]", "{}", `[1]`, `["a"]`, `{"a":1}`, `""`, `"1"`, `"true"`, `[null]`, `{"":{}}`, "undefined", "nul", "",
	`[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]`,
}

// nodes are forms of Figma node ids, right and wrong.
var nodes = []string{
	"12:34", "12-34", "I5:6;7:8", "I5-6;7-8", "-1:-2", "-1--2", "0:0", "0:1", "007:1", "I1:2;3:4;5:6", "1:2;3:4", "99999999999999999999:1", "I-1:2",
	"", " 1:2", "1:2 ", "1:2\\n", "1:2;", ";1:2", "1:2;3-4", "1", "a:b", "1:b", "i1:2", "1::2", "１:２", "1:2:3", "1.5:2", "+1:2", "1%3A2",
	"[1:2]", "1:2,3:4",
	"https://www.figma.com/design/AbCdEfGhIjKlMnOpQrStUv/Title?node-id=12-34&t=x", "https://www.figma.com/file/AbCdEfGhIjKlMnOpQrStUv/x",
	"figma://file/AbCdEfGhIjKlMnOpQrStUv?node-id=1-2", "https://example.com/1:2", "figma.com/design/AbCdEfGhIjKlMnOpQrStUv?node-id=%zz",
}

// words are what enumerated members know, near misses included.
var words = []string{
	"wf2des", "des2wf", "code2wf", "WF2DES", "wf2des ", "normal", "auto_confirm", "autoConfirm", "confirm", "reject", "Confirm", "CONFIRM",
	"fixed", "adopted",
	"fiхed", "parsed", "completed", "failed", "progress", "Completed", "cancelled", "created", "0", "1", "", "processing", "parse",
	"awaiting_confirm", "assemble",
}

// longText lies at the limits of columns and bodies, in code points of one to four bytes and of escapes.
func longText(g *generator) string {
	lengths := []int{31, 32, 33, 254, 255, 256, 257, 499, 500, 501, 999, 1001, 7999, 8000, 8001, 9000, 20000, 66000}
	letters := []string{"a", "あ", "🦊", "e\u0301", `\u0041`, " ", "\u2028", `\ud83e\udd8a`}
	return strings.Repeat(pick(g, letters), pick(g, lengths))
}

// artifactKey is an artifact's key under the run's prefix, or something that must not pass for one.
func artifactKey(g *generator, prefix string) string {
	good := []string{"1/result.json", "result.json", "1/日本語 🦊.json", "x", "1/" + strings.Repeat("k", 300), "1/a b%20c;d.json", "1/\u2028"}
	bad := []string{"", "/", "../other/1/r.json", "1/../../x", "1//x", `1/\\x`, `1/\u0007`, `1/\n`, strings.Repeat("k", 480), `1/\u0000`,
		`\ud800`, "1/\x80"}
	if g.chance(70) {
		return prefix + pick(g, good)
	}
	if g.chance(60) {
		return prefix + pick(g, bad)
	}
	return pick(g, []string{"", "/" + prefix + "r.json", "s3://bucket/" + prefix + "r.json", "https://x.example/" + prefix + "r.json",
		"wf2des/01980000-0000-7000-8000-00000000000a/1/r.json", strings.ToUpper(prefix) + "r.json", " " + prefix + "r.json", "r.json", "..",
		longText(g)})
}

// failures are what workers say went wrong, some of it not fit for anybody's eyes.
var failures = []string{
	"The frame is empty", "AKIAIOSFODNN7EXAMPLE", "arn:aws:s3:::bucket/key", "postgres://user:pw@db.internal:5432/x", "/home/app/worker.py",
	`C:\\secret\\x`,
	"Traceback (most recent call last):", "goroutine 1 [running]:", "pq: duplicate key value", "SELECT * FROM wf2des",
	"Bearer abcdefghijklmnop", "eyJhbGciOi.J9.x",
	"  ", "\u202e", `\u0000`, `\ud800`, "\xff\xfe broken", "日本語の説明 🦊", "10.0.0.1 refused", "a\u2028b", `line\nline`, "",
}

// errorCodes are codes of the fixed list and others.
var errorCodes = []string{"source_not_found", "timeout", "content_policy", "internal", "undeliverable", "no_such_code", "", "TIMEOUT", `\u0000`, "🦊"}

func quoted(inside string) string { return `"` + inside + `"` }
