package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// grammar is the command line, ready to parse.
func grammar(t *testing.T) *kong.Kong {
	t.Helper()
	parser, err := kong.New(&cli{}, options(t.Context(), streams{strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}})...)
	if err != nil {
		t.Fatal(err)
	}
	return parser
}

// Every command says more than its name and gives examples, and every example is a command line that exists. Catches help that has
// fallen behind the commands.
func TestEveryCommandHasExamplesThatParse(t *testing.T) {
	t.Parallel()
	leaves := grammar(t).Model.Leaves(false)
	if len(leaves) < 14 {
		t.Fatalf("only %d commands", len(leaves))
	}
	for _, leaf := range leaves {
		_, examples, ok := strings.Cut(leaf.Detail, "Examples:\n")
		if !ok || leaf.Help == "" {
			t.Errorf("%s has no examples", leaf.FullPath())
			continue
		}
		if !strings.Contains(examples, leaf.FullPath()) {
			t.Errorf("no example of %s is about it", leaf.FullPath())
		}
		for _, words := range commandLines(examples) {
			if _, err := grammar(t).Parse(words); err != nil {
				t.Errorf("%s: the example %q: %v", leaf.FullPath(), words, err)
			}
		}
	}
	for _, words := range commandLines(description) {
		if _, err := grammar(t).Parse(words); err != nil {
			t.Errorf("the description's %q: %v", words, err)
		}
	}
}

// commandLines are the calls of runctl in a text, as a shell would take them apart: after the name, up to a pipe or a redirection.
func commandLines(text string) [][]string {
	var all [][]string
	for line := range strings.Lines(text) {
		for {
			_, rest, ok := strings.Cut(line, "runctl ")
			if !ok {
				break
			}
			words, after := shell(rest)
			all, line = append(all, words), after
		}
	}
	return all
}

// shell splits at blanks outside of quotes, and ends at a pipe, a redirection, a bracket or a gap of two blanks.
func shell(text string) (words []string, rest string) {
	var word strings.Builder
	quote := rune(0)
	flush := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	for i, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case quote == 0 && strings.ContainsRune("|>)\n", r), quote == 0 && strings.HasPrefix(text[i:], "  "):
			flush()
			return words, text[i:]
		case quote == 0 && r == ' ':
			flush()
		default:
			word.WriteRune(r)
		}
	}
	flush()
	return words, ""
}

// Catches a stranger who gets no help: without arguments, for a group, for a command, and after a mistake.
func TestHelpIsNeverFarAway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{nil, exitDone, "To free a run that is stuck:"},
		{[]string{"--help"}, exitDone, "Exit codes: 0 done"},
		{[]string{"runs", "--help"}, exitDone, "runs stuck"},
		{[]string{"runs", "requeue", "--help"}, exitDone, "the old worker still says"},
		{[]string{"runs"}, exitUsage, "see runctl runs --help"},
		{[]string{"runs", "requeue"}, exitUsage, "see runctl runs requeue --help"},
		{[]string{"runs", "requeu", "x"}, exitUsage, `did you mean "requeue"`},
		{[]string{"runs", "list", "-o", "xml"}, exitUsage, "table"},
	} {
		got := ctl(t, "", c.args...)
		if got.code != c.code || !strings.Contains(strings.Join(strings.Fields(got.out+got.err), " "), c.says) {
			t.Errorf("%v: exit code %d and no %q: %s%s", c.args, got.code, c.says, got.out, got.err)
		}
	}
}
