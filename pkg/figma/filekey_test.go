package figma_test

import (
	"strings"
	"testing"

	"framerun.dev/pkg/figma"
)

func TestFileKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"itMrdXTfcIHTHbSGK0Ivox",
		"s8asddvmnaAYU305i59Mipbc",
		"113828505480351706",
		"x",
		" spaces stay ",
		"12:34",
		"a/b",
		"日本",
		strings.Repeat("あ", 255),
	} {
		if got, err := figma.FileKey(key); got != key || err != nil {
			t.Errorf("FileKey(%q) = %q, %v; want it unchanged", key, got, err)
		}
	}
}

func TestFileKeyRefuses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                        "a file key must not be empty or blank",
		" \t\u3000":               "a file key must not be empty or blank",
		"a\x00b":                  "a file key must not contain NUL or broken UTF-8",
		"a\xffb":                  "a file key must not contain NUL or broken UTF-8",
		strings.Repeat("あ", 256):  "a file key has at most 255 characters, not 256",
		"https://example.com/abc": "a URL is not a file key, and no file key was found in this one",
		"https://www.figma.com/community/file/1287828769207775946": "a URL is not a file key, and no file key was found in this one",
		"www.figma.com/files/project/176167247":                    "a URL is not a file key, and no file key was found in this one",
	} {
		if got, err := figma.FileKey(in); got != "" || err == nil || err.Error() != want {
			t.Errorf("FileKey(%.40q) = %q, %v; want %s", in, got, err, want)
		}
	}
}
