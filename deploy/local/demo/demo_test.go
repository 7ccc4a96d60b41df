package demo

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"framerun.dev/deploy/local/stack"
)

// Whoever tidies the test data must not tidy away what makes it worth playing.
func TestFramesAreAsTheyStandInFigma(t *testing.T) {
	all, err := readFrames()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range append(slices.Clone(all.Page), all.Confirmed, all.AutoConfirmed, all.Imported, all.Dashed, all.DashedTwin, all.Sublayer,
		all.Emoji, all.Control, all.Long) {
		if f.FileKey == "" || f.NodeID == "" {
			t.Errorf("frame without a key or an id: %+v", f)
		}
		names = append(names, f.Name)
	}
	together := strings.Join(names, "\n")
	for what, text := range map[string]string{
		"Korean": "히스토리", "Japanese": "習慣設定画面", "a backspace": "\b", "U+0010": "\x10", "U+2028": "\u2028", "U+180E": "\u180e",
		"a character beyond the first plane": "\U001004d4", "an emoji": "🦆", "a space at the beginning": "\n ", "a space at the end": " \n",
	} {
		if !strings.Contains("\n"+together+"\n", text) {
			t.Errorf("no name has %s", what)
		}
	}
	if !strings.HasPrefix(all.Sublayer.NodeID, "I") || !strings.Contains(all.Sublayer.NodeID, ";") {
		t.Errorf("%q is no sublayer's id", all.Sublayer.NodeID)
	}
	if all.Dashed.node() != "414:40744" || all.Dashed.NodeID == all.Dashed.node() || all.Dashed.NodeID != all.DashedTwin.NodeID {
		t.Errorf("%q and %q should be one node in the form of links", all.Dashed.NodeID, all.DashedTwin.NodeID)
	}
}

// A demo that is content with anything shows nothing.
func TestSurpriseSaysWhatWasExpectedAndWhatCame(t *testing.T) {
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "short and stout")
	}))
	defer broken.Close()
	var out bytes.Buffer
	err := Run(t.Context(), &out, stack.Address{Gateway: broken.URL})
	if err == nil {
		t.Fatal("a gateway that only makes tea was good enough")
	}
	for _, text := range []string{stories[0].title, "POST /v1/projects/0/wf2des", "expected 201", "418 short and stout"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("colours where no terminal is: %q", out.String())
	}
}

func TestUpdateNoticesAChangedName(t *testing.T) {
	r := (&demo{}).wf2des(frame{Name: "welcome "}, nil)
	if err := r.update(resource{ID: "a", ScreenID: "welcome "}, "here"); err != nil {
		t.Error(err)
	}
	if err := r.update(resource{ID: "a", ScreenID: "welcome"}, "here"); err == nil {
		t.Error("a name may lose its last space")
	}
	if err := r.update(resource{ID: "b", ScreenID: "welcome "}, "here"); err == nil {
		t.Error("a run may become another")
	}
}

func TestStreamReadsEventsAndNoticesItsEnd(t *testing.T) {
	s := stream{lines: bufio.NewScanner(strings.NewReader(
		": still parsing\n\nevent: run\nid: 1\ndata: {\"a\":1}\n\nevent: progress\ndata: {}\n\nevent: run\ndata: cut off"))}
	for _, want := range []event{{"run", `{"a":1}`}, {"progress", `{}`}} {
		got, err := s.next()
		if err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	if got, err := s.next(); err == nil {
		t.Errorf("an event that was cut off counts: %+v", got)
	}
}

func TestNextPage(t *testing.T) {
	for link, want := range map[string]string{
		"":                                "",
		`</v1/x?cursor=a%3D>; rel="next"`: "/v1/x?cursor=a%3D",
		`</v1/x>; rel="prev"`:             "",
	} {
		if got := nextPage(answer{header: http.Header{"Link": {link}}}); got != want {
			t.Errorf("after %q comes %q, want %q", link, got, want)
		}
	}
}
