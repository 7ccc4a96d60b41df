package figma_test

import (
	"encoding/json/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"framerun.dev/pkg/figma"
)

func TestNodeID(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("9", 200)
	for in, want := range map[string]string{
		"0:1":                           "0:1",
		"253:3900":                      "253:3900",
		"12-34":                         "12:34",
		"I5:6;7:8":                      "I5:6;7:8",
		"I5-6;7-8":                      "I5:6;7:8",
		"1:2;3:4":                       "1:2;3:4",
		"I1:2":                          "I1:2",
		"-1:2":                          "-1:2",
		"1:-2":                          "1:-2",
		"-1-2":                          "-1:2",
		"1--2":                          "1:-2",
		"-1--2":                         "-1:-2",
		"I-1--2;3--4":                   "I-1:-2;3:-4",
		"007-010":                       "007:010",
		huge + ":1":                     huge + ":1",
		huge + "-1":                     huge + ":1",
		strings.Repeat("1", 253) + ":1": strings.Repeat("1", 253) + ":1",
	} {
		got, err := figma.NodeID(in)
		if got != want || err != nil {
			t.Errorf("NodeID(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestNodeIDRefuses(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"nothing":                 ``,
		"a blank":                 ` `,
		"a space before":          ` 1:2`,
		"a line feed after":       "1:2\n",
		"mixed forms":             `I5:6;7-8`,
		"mixed forms, reversed":   `I5-6;7:8`,
		"one half":                `12`,
		"an empty half":           `12:`,
		"three halves":            `1:2:3`,
		"three halves, dashed":    `1-2-3`,
		"three minus signs":       `1---2`,
		"a plus":                  `+1:2`,
		"lower case i":            `i5:6;7:8`,
		"a trailing semicolon":    `1:2;`,
		"I within":                `1:2;I3:4`,
		"comma":                   `1:2,3:4`,
		"percent encoding":        `12%3A34`,
		"digits of other scripts": `１:２`,
		"a Unicode minus":         `−1:2`,
		"a fraction":              `1.5:2`,
		"hexadecimal":             `a:b`,
		"NUL":                     "1:2\x00",
		"broken UTF-8":            "1:2\xff",
		"256 characters":          strings.Repeat("1", 254) + ":1",
		"256 characters, dashed":  strings.Repeat("1", 254) + "-1",
		"a glued link value":      `-1-3848-27lpastn170Hvng0-0`,
	} {
		if got, err := figma.NodeID(in); err == nil || got != "" {
			t.Errorf("%s: NodeID(%q) = %q, %v; want an error", name, in, got, err)
		}
	}
}

// Every id in the real frames is taken, and only the dashed ones change.
func TestNodeIDOfRealFrames(t *testing.T) {
	t.Parallel()
	var frames []struct {
		FileKey string `json:"figmaFileKey"`
		NodeID  string `json:"nodeId"`
	}
	sample(t, "figma-frames.json", &frames)
	for _, f := range frames {
		want := f.NodeID
		if !strings.Contains(want, ":") {
			want = strings.ReplaceAll(want, "-", ":")
		}
		if got, err := figma.NodeID(f.NodeID); got != want || err != nil {
			t.Errorf("NodeID(%q) = %q, %v; want %q", f.NodeID, got, err, want)
		}
		if got, err := figma.FileKey(f.FileKey); got != f.FileKey || err != nil {
			t.Errorf("FileKey(%q) = %q, %v; want it unchanged", f.FileKey, got, err)
		}
	}
}

// Two texts become one id only if they are one node: a sublayer is not its ancestor, and -1 is not 1.
func TestNodeIDMatchesNothingLoosely(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, in := range []string{"5:6", "I5:6", "I5:6;7:8", "7:8", "I5:6;7:8;9:1", "5:6;7:8", "-5:6", "5:-6", "-5:-6", "05:6", "56:6", "5:66", "0:6", "-0:6"} {
		id, err := figma.NodeID(in)
		if err != nil {
			t.Fatal(err)
		}
		if other, twice := seen[id]; twice {
			t.Errorf("%q and %q are both %q", in, other, id)
		}
		seen[id] = in
	}
}

// Whatever ids exist, both spellings of one are the same id, and the canonical form is its own canonical form.
func TestNodeIDHasOneForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		colons := rapid.StringMatching(`I?(-?[0-9]{1,12}:-?[0-9]{1,12};){0,5}-?[0-9]{1,12}:-?[0-9]{1,12}`).Draw(t, "id")
		for _, spelling := range []string{colons, strings.ReplaceAll(colons, ":", "-")} {
			if got, err := figma.NodeID(spelling); got != colons || err != nil {
				t.Fatalf("NodeID(%q) = %q, %v; want %q", spelling, got, err, colons)
			}
		}
	})
}

var wellFormed = regexp.MustCompile(`^I?-?[0-9]+:-?[0-9]+(;-?[0-9]+:-?[0-9]+)*$`)

// Any text at all is either a canonical id or an error that is short and printable, and never a panic.
func TestAnyText(t *testing.T) {
	t.Parallel()
	pieces := rapid.SampledFrom([]string{"I", "-", ":", ";", "1", "23", "%3A", "https://", "www.figma.com/", "figma://", "embed?url=",
		"design/", "abc", "/branch/", "?node-id=", "&node-id=", "&url=", "#", "%", "\x00", "\xff", "\u2028", "…", " "})
	text := rapid.OneOf(rapid.String(), rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(pieces, 0, 40).Draw(t, "pieces"), "")
	}))
	rapid.Check(t, func(t *rapid.T) {
		s := text.Draw(t, "s")
		id, err := figma.NodeID(s)
		if err == nil && (!wellFormed.MatchString(id) || len(id) != len(s)) {
			t.Fatalf("NodeID(%q) = %q", s, id)
		}
		checkReadable(t, err)
		key, err := figma.FileKey(s)
		if err == nil && (key != s || strings.Contains(s, "://")) {
			t.Fatalf("FileKey(%q) = %q", s, key)
		}
		checkReadable(t, err)
	})
}

func checkReadable(t *rapid.T, err error) {
	if err == nil {
		return
	}
	text := err.Error()
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '\u2028' || r == 0x7f }) {
		t.Fatalf("not fit for a client: %q", text)
	}
}

func TestErrorsShowLittle(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("k", 250)
	for _, in := range []string{strings.Repeat("あ", 200), "https://www.figma.com/design/" + key + "?node-id=1:" + strings.Repeat("2", 250)} {
		for _, check := range []func(string) (string, error){figma.NodeID, figma.FileKey} {
			if _, err := check(in); err != nil && utf8.RuneCountInString(err.Error()) > 240 {
				t.Errorf("%d characters: %v", utf8.RuneCountInString(err.Error()), err)
			}
		}
	}
	_, err := figma.NodeID("1:2\x00\u202e\n")
	if want := `"1:2\x00\u202e\n" is not a Figma node id, which looks like 12:34 or I5:6;7:8`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func sample(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}
