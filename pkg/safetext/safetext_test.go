package safetext

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Prose in any language is shown as it stands, on one line.
func TestProseIsShown(t *testing.T) {
	for text, want := range map[string]string{
		"The page could not be read.":                            "",
		"Layer 3 is empty; 12 of 40 frames (30 %) were skipped.": "",
		"レイヤー「ボタン/primary」が見つかりません。別のフレームを選んでください。": "",
		"프레임을 찾을 수 없습니다":                                               "",
		"Фрейм слишком большой, попробуйте меньше":                     "",
		"Button/Primary/Large and icon/24 are hidden, see 2026/11/29.": "",
		"It took 3.5 s, from 12:30 to 12:31, at 1.5:1":                 "",
		"Don't know what “Card — large” means… → try again 🙂":          "",
		"half \uFFFD of it":                      "",
		"  one\r\n\ttwo\u2028three \u00a0 four ": "one two three four",
		"abc\u202Edef\u2066ghi":                  "abcdefghi",
		"Internationalization of the OutOfMemoryError and an_underscored_name failed": "",
	} {
		if want == "" {
			want = text
		}
		if got, ok := Clean(text, 1000); !ok || got != want {
			t.Errorf("%q: %q, %t; want %q", text, got, ok, want)
		}
	}
}

// What could be a secret or a place inside is not shown, however it is dressed up.
func TestWhatIsNoProseIsNotShown(t *testing.T) {
	for _, text := range []string{
		"", " ", "\u200b\ufeff", "\u2800\u3164", "\u0000\u0001",
		"AKIA\nIOSFODNN7EXAMPLE", "AKIA\uFE0FIOSFODNN7EXAMPLE", "AKIA\u034FIOSFODNN7EXAMPLE", "ＡＫＩＡＩＯＳＦＯＤＮＮ７ＥＸＡＭＰＬＥ", "АKIAIOSFODNN7EXAMPLE", "𝐀𝐊𝐈𝐀𝐈𝐎𝐒𝐅𝐎𝐃𝐍𝐍𝟕𝐄𝐗𝐀𝐌𝐏𝐋𝐄",
		"wJalrXUtnFEMI/K7MDENG/bPx\nRfiCYEXAMPLEKEY", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY", "eyJhbGciOiJI\nUzI1NiJ9.eyJz", "whsec\n_MfKQ9r8GKYqrTwjUPD8I", "-----\nBEGIN RSA",
		"role_arn:aws:iam::123456789012:role/worker", "user:pass@db.example.com:5432", "//user:pass@host/x", "token: hunter2", "pass=hunter2",
		"Cookie: session", "npm_abcdefghijklmnopqrstuvwxyz", "rk_live_51H8abcdefgh", "ya29.a0Af", "SG.abc.def", "https://hooks.slack.com/services/T0/B0/x", "callback?code=1",
		"/root", "/tmp", "/etc\n/passwd", "var/lib/worker/secrets", ".ssh/id_rsa", `..\..\windows`, "%2Fetc%2Fpasswd", "⁄etc⁄passwd", "in ./src/worker", "a/b/c/d",
		"at async run (index.mjs:12:3)", "main.tsx:42:7", "Foo.kt:12", "in Foo.cs:line 12", "x.py line 3, in <module>", "panicked at main", "0xc000010000",
		"permission denied for table wf2des", `column "prompt" of wf2des does not exist`, "null value in column", "DROP TABLE x", "TRUNCATE TABLE y", "SELECT a FROM b",
		"connect to 10.0.3.17", "localhost is down", "Bearer hunter2hunter2", "see config.json",
	} {
		for _, dressed := range []string{text, "The worker gave up: " + text, strings.Repeat("so much ", 50) + text} {
			if got, ok := Clean(dressed, 1000); ok && (dressed == text || unfitBeside(text)) {
				t.Errorf("%q is shown: %q", dressed, got)
			}
		}
	}
}

// unfitBeside tells texts that are nothing at all, and so do no harm beside others.
func unfitBeside(text string) bool {
	_, shown := Clean("x"+text, 1000)
	return !shown
}

// Whatever is shown is valid, on one line, visible and short enough; and showing it again changes nothing.
func TestAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, max := rapid.String().Draw(t, "text"), rapid.IntRange(2, 50).Draw(t, "max")
		got, ok := Clean(text, max)
		if !ok {
			if got != "" {
				t.Fatalf("refused, and returned %q", got)
			}
			return
		}
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > max || got == "" || strings.ContainsFunc(got, unicode.IsControl) {
			t.Fatalf("%q", got)
		}
	})
}

func TestShortened(t *testing.T) {
	if got, ok := Clean(strings.Repeat("長い", 500)+"。", 1000); !ok || got != strings.Repeat("長い", 499)+"長…" {
		t.Errorf("%.40q…, %t", got, ok)
	}
	// A key that is cut in two by the end of what is shown is found all the same.
	if got, ok := Clean(strings.Repeat("word ", 199)+"AKIAIOSFODNN7EXAMPLE", 1000); ok {
		t.Errorf("shown: …%q", got[len(got)-20:])
	}
}
