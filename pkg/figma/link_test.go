package figma_test

import (
	"strings"
	"testing"

	"framerun.dev/pkg/figma"
)

func TestParseURLOfRealLinks(t *testing.T) {
	t.Parallel()
	var links []struct {
		URL       string `json:"url"`
		FileKey   string `json:"fileKey"`
		BranchKey string `json:"branchKey"`
		NodeID    string `json:"nodeId"`
		Note      string `json:"note"`
	}
	sample(t, "figma-urls.json", &links)
	for _, l := range links {
		want := figma.Link{FileKey: l.FileKey, BranchKey: l.BranchKey, NodeID: l.NodeID}
		got, ok := figma.ParseURL(l.URL)
		if got != want || ok != (l.FileKey != "") {
			t.Errorf("%s\n%s\ngot  %+v, %t\nwant %+v", l.Note, l.URL, got, ok, want)
		}
	}
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		url  string
		want figma.Link
	}{
		"no scheme":                      {"www.figma.com/design/abc/T?node-id=1-2", figma.Link{FileKey: "abc", NodeID: "1:2"}},
		"bare host, upper case":          {"HTTPS://Figma.COM/design/abc", figma.Link{FileKey: "abc"}},
		"spaces around":                  {" https://www.figma.com/design/abc?node-id=1-2\n", figma.Link{FileKey: "abc", NodeID: "1:2"}},
		"a title no URL may hold":        {"https://www.figma.com/design/abc/100%-done|x?node-id=1-2", figma.Link{FileKey: "abc", NodeID: "1:2"}},
		"a fragment":                     {"https://www.figma.com/design/abc?node-id=1-2#77", figma.Link{FileKey: "abc", NodeID: "1:2"}},
		"sublayer":                       {"https://www.figma.com/design/abc?node-id=I5-6%3B7-8", figma.Link{FileKey: "abc", NodeID: "I5:6;7:8"}},
		"the same node twice":            {"https://www.figma.com/design/abc?node-id=1-2&node-id=1%3A2", figma.Link{FileKey: "abc", NodeID: "1:2"}},
		"a good node, then a broken one": {"https://www.figma.com/design/abc?node-id=1-2&node-id=%zz", figma.Link{FileKey: "abc"}},
		"another parameter's node":       {"https://www.figma.com/design/abc?starting-point-node-id=1-2", figma.Link{FileKey: "abc"}},
		"a title called branch":          {"https://www.figma.com/design/abc/branch", figma.Link{FileKey: "abc"}},
		"slide deck":                     {"https://www.figma.com/deck/abc/T", figma.Link{FileKey: "abc"}},
		"unencoded in an embed":          {"https://www.figma.com/embed?url=https://www.figma.com/design/abc/T?t=x&node-id=1-2", figma.Link{FileKey: "abc", NodeID: "1:2"}},
		"embed, url first":               {"https://www.figma.com/embed?url=https%3A%2F%2Fwww.figma.com%2Fdesign%2Fabc&embed_host=x", figma.Link{FileKey: "abc"}},
		"branch in an embed":             {"https://www.figma.com/embed?url=https%3A%2F%2Ffigma.com%2Fdesign%2Fabc%2Fbranch%2Fdef", figma.Link{FileKey: "abc", BranchKey: "def"}},
	} {
		if got, ok := figma.ParseURL(test.url); got != test.want || !ok {
			t.Errorf("%s: got %+v, %t; want %+v", name, got, ok, test.want)
		}
	}
}

func TestParseURLRefuses(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"",
		"12:34",
		"abc",
		"https://example.com/design/abc",
		"https://notfigma.com/design/abc",
		"https://www.figma.com.example.com/design/abc",
		"https://www.figma.com@example.com/design/abc",
		"https://example.com/?u=https://www.figma.com/design/abc",
		"ftp://www.figma.com/design/abc",
		"https://www.figma.com",
		"https://www.figma.com/design",
		"https://www.figma.com/design/",
		"https://www.figma.com/design/%20",
		"https://www.figma.com/design/" + strings.Repeat("k", 256),
		"https://www.figma.com/team/123",
		"https://www.figma.com/embed",
		"https://www.figma.com/embed?url=",
		"https://www.figma.com/embed?url=%zz",
		"https://www.figma.com/embed?url=https%3A%2F%2Fexample.com%2Fdesign%2Fabc",
		strings.Repeat("https://www.figma.com/embed?url=", 100_000),
		"figma://",
	} {
		if got, ok := figma.ParseURL(url); ok || got != (figma.Link{}) {
			t.Errorf("ParseURL(%.80q) = %+v, %t; want nothing", url, got, ok)
		}
	}
}

func TestPastedURLIsNamedInTheError(t *testing.T) {
	t.Parallel()
	const deep = "I3802:342452;3141:159546;258:38635;250:78017;255:17769;121:54933;121:54928"
	for _, test := range []struct{ url, found string }{
		{"https://www.figma.com/file/4RQ2PTSquenHeiCKjWoYe6/Blog-posts?node-id=29%3A22",
			`this one has the file key "4RQ2PTSquenHeiCKjWoYe6" and the node id "29:22"`},
		{"https://www.figma.com/design/kxtmgl0drRe8c9gZmRrdva/branch/QLdeeO2AazqXaV9dG1v8v1/V?node-id=40936-5762",
			`this one has the file key "QLdeeO2AazqXaV9dG1v8v1" and the node id "40936:5762"`},
		{"https://www.figma.com/board/0RFnZ8ifV8m94GUw2fuPPg",
			`this one has the file key "0RFnZ8ifV8m94GUw2fuPPg" and names no single node`},
		{"https://www.figma.com/design/s8asddvmnaAYU305i59Mipbc?node-id=" + deep,
			`this one has the file key "s8asddvmnaAYU305i59Mipbc" and the node id "` + deep + `"`},
	} {
		if _, err := figma.NodeID(test.url); err == nil || err.Error() != "a Figma URL is not a node id: "+test.found {
			t.Errorf("NodeID(%q): %v", test.url, err)
		}
		if _, err := figma.FileKey(test.url); err == nil || err.Error() != "a Figma URL is not a file key: "+test.found {
			t.Errorf("FileKey(%q): %v", test.url, err)
		}
	}
}
