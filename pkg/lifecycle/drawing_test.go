package lifecycle_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"framerun.dev/pkg/lifecycle"
	"github.com/google/go-cmp/cmp"
)

// Catches a package comment that draws another life than the table allows. It leaves out the loops, which the prose tells of.
func TestPackageDrawing(t *testing.T) {
	t.Parallel()
	drawings := regexp.MustCompile(`(?m)(?:^//\t.*──▶.*\n)+`).FindAllString(readFile(t, "doc.go"), -1)
	if len(drawings) != len(lifecycle.Kinds) {
		t.Fatalf("doc.go holds %d drawings, want one for each of %v", len(drawings), lifecycle.Kinds)
	}
	for i, kind := range lifecycle.Kinds {
		var want []string
		for _, e := range edges(kind) {
			if from, to, _ := strings.Cut(e, " --> "); !strings.HasPrefix(to, from+" ") {
				want = append(want, e)
			}
		}
		if diff := cmp.Diff(want, chains(kind, drawings[i])); diff != "" {
			t.Errorf("the drawing of %s in doc.go (-table +drawing):\n%s", kind, diff)
		}
	}
}

// Catches a README that shows newcomers another life than the table allows. A drawing is a mermaid state diagram whose title is the
// kind; its lines are "from --> to : verb" with a guard in brackets where the transition has one, and "end --> [*]".
func TestReadmeDrawings(t *testing.T) {
	t.Parallel()
	text := readFile(t, "../../README.md")
	for _, kind := range lifecycle.Kinds {
		block := regexp.MustCompile("(?s)```mermaid\n---\ntitle: " + string(kind) + "\n---\nstateDiagram-v2\n(.*?)```").FindStringSubmatch(text)
		if block == nil {
			t.Errorf("README.md has no mermaid stateDiagram-v2 with the title %q: draw the life of a %s run there", kind, kind)
			continue
		}
		want := edges(kind)
		for _, s := range statesOf[kind] {
			if !s.Open() {
				want = append(want, string(s)+" --> [*]")
			}
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, arrows(block[1])); diff != "" {
			t.Errorf("the drawing of %s in README.md (-table +drawing):\n%s", kind, diff)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("the lifecycle should be drawn in %s, which cannot be read: %v", name, err)
	}
	return string(text)
}

// edges are the table's lines for one kind in the README's notation, sorted.
func edges(kind lifecycle.Kind) []string {
	var all []string
	for _, tr := range lifecycle.Transitions {
		if tr.Kind != kind {
			continue
		}
		from, guard := string(tr.From), ""
		if tr.From == lifecycle.None {
			from = "[*]"
		}
		if tr.When != lifecycle.Always {
			guard = " [" + string(tr.When) + "]"
		}
		all = append(all, from+" --> "+string(tr.To)+" : "+string(tr.Verb)+guard)
	}
	slices.Sort(all)
	return all
}

// arrows are the arrow lines of a mermaid diagram, sorted.
func arrows(diagram string) []string {
	var all []string
	for line := range strings.Lines(diagram) {
		if line = strings.TrimSpace(line); strings.Contains(line, "-->") {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return all
}

// chains takes the package's drawing apart: "a ──verb──▶ b ──verb──▶ c", where a line that begins with an arrow begins the run.
func chains(kind lifecycle.Kind, drawing string) []string {
	arrow := regexp.MustCompile(`\s*──([a-z_ \[\]]+)──▶\s*`)
	var all []string
	for line := range strings.Lines(drawing) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "//"))
		states, verbs := arrow.Split(line, -1), arrow.FindAllStringSubmatch(line, -1)
		for i, verb := range verbs {
			for _, from := range named(kind, states[i]) {
				all = append(all, from+" --> "+states[i+1]+" : "+verb[1])
			}
		}
	}
	slices.Sort(all)
	return all
}

// named are the states that a word of the package's drawing stands for.
func named(kind lifecycle.Kind, word string) []string {
	switch word {
	case "":
		return []string{"[*]"}
	case "any open state":
		var open []string
		for _, s := range statesOf[kind] {
			if s.Open() {
				open = append(open, string(s))
			}
		}
		return open
	}
	return []string{word}
}
