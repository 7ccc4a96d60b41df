package pkg_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const suite = "framerun.dev/"

// rule says what one room's code (not its tests) may import beside the standard library.
type rule struct {
	room    string   // folder of the tree; its subfolders have rules of their own
	ours    []string // rooms of the suite
	foreign []string // beginnings of import paths from outside
	never   []string // beginnings of standard packages that are too much here
	because string
}

var rules = []rule{
	{room: "pkg/lifecycle", never: []string{"context", "encoding", "net", "os", "io", "log", "database", "sync", "math/rand"},
		because: "what may happen to a run is decided by pure functions: nothing in it can wait, fail or be faked"},
	{room: "pkg/lifecycle/lifecycletest", ours: []string{"pkg/lifecycle"},
		because: "a timeline is replayed from what lifecycle promises, without the store that wrote it"},
	{room: "pkg/store", ours: []string{"pkg/lifecycle"}, foreign: []string{"github.com/jmoiron/sqlx", "github.com/lib/pq"},
		never: []string{"net/http"}, because: "the store keeps the truth and tells nobody: no HTTP, no queue, no bus inside a transaction"},
	{room: "pkg/store/storetest", ours: []string{"pkg/localpg", "migrations", "migrations/platform"}, foreign: []string{"github.com/lib/pq"},
		because: "every room may test on a real database without dragging in another room"},
	{room: "pkg/servicetest", ours: []string{"pkg/auth", "pkg/auth/issuer", "pkg/lifecycle", "pkg/store", "pkg/store/storetest", "pkg/web", "migrations/platform"},
		foreign: []string{"github.com/google/go-cmp/", "github.com/jmoiron/sqlx", "github.com/prometheus/"},
		because: "services are tested on the real parts that all of them have, and on nothing that only one has"},
	{room: "pkg/localpg", foreign: []string{"github.com/lib/pq"},
		because: "it runs a server and knows nothing of what is kept in it"},
	{room: "pkg/relay", ours: []string{"pkg/lifecycle", "pkg/store"},
		because: "the relay carries to senders that it declares itself; AWS and NATS stay behind them"},
	{room: "pkg/jobs", ours: []string{"pkg/lifecycle"}, foreign: []string{"github.com/aws/"},
		because: "a sender turns a value into a message; where the value comes from is not its business"},
	{room: "pkg/events", ours: []string{"pkg/lifecycle"}, foreign: []string{"github.com/nats-io/nats.go"},
		because: "a sender turns a value into a message; where the value comes from is not its business"},
	{room: "pkg/artifacts", ours: []string{"pkg/lifecycle"}, foreign: []string{"github.com/aws/"},
		because: "keys and links can be made without a row"},
	{room: "pkg/resultdoc", ours: []string{"pkg/lifecycle"}, foreign: []string{"go.mongodb.org/mongo-driver/v2"},
		because: "the document is a worker's as much as the suite's: whoever speaks of it needs no row"},
	{room: "pkg/designs", ours: []string{"pkg/lifecycle"}, foreign: []string{"github.com/lib/pq"},
		because: "the registry is the platform's: it may be another database, and knows nothing of the suite's tables"},
	{room: "pkg/cloud", foreign: []string{"github.com/aws/"},
		because: "it is the SDK's configuration and nothing else"},
	{room: "pkg/safetext", foreign: []string{"golang.org/x/text/unicode/norm"},
		because: "what a client may read does not depend on who wrote it"},
	{room: "pkg/figma", because: "how Figma writes its ids is true without us"},
	{room: "pkg/auth", ours: []string{"pkg/lifecycle"},
		foreign: []string{"github.com/MicahParks/", "github.com/golang-jwt/jwt/v5", "github.com/standard-webhooks/"}, never: []string{"database"},
		because: "who is asking is known before any SQL"},
	{room: "pkg/auth/issuer",
		because: "what mints tokens for tests shares nothing with what verifies them, or both could be wrong alike"},
	{room: "pkg/web", ours: []string{"pkg/lifecycle", "pkg/auth"},
		foreign: []string{"github.com/gorilla/mux", "github.com/prometheus/", "golang.org/x/time/rate"},
		never:   []string{"database"}, because: "the manners of HTTP are the same whatever is stored; errors reach it as lifecycle's and auth's"},
	{room: "pkg/resource", ours: []string{"pkg/lifecycle", "pkg/web"},
		because: "how a run looks to a client does not depend on how it is stored"},
	{room: "pkg/app", ours: []string{"pkg/lifecycle", "pkg/store", "pkg/web", "pkg/auth", "pkg/events", "pkg/relay"}, foreign: []string{"github.com/prometheus/"},
		because: "it sets up what every service has, and the lane of public events of every one that writes; what only some have (queues, S3) is theirs"},
}

// Catches a wall between two rooms that somebody broke through, and a room without walls.
func TestRoomsImportOnlyWhatTheyMay(t *testing.T) {
	t.Parallel()
	byRoom := map[string]rule{}
	for _, r := range rules {
		byRoom[r.room] = r
	}
	for _, f := range goFiles(t, "pkg") {
		r, known := byRoom[f.room]
		if !known && !f.test {
			t.Errorf("%s: %s has no rule; say in pkg/imports_test.go what it may import and why", f.name, f.room)
		}
		for _, imported := range f.imports {
			if known && !f.test && !r.allows(imported) {
				t.Errorf("%s imports %q, but %s", f.name, imported, r.because)
			}
		}
	}
}

func (r rule) allows(imported string) bool {
	begins := func(beginning string) bool {
		return imported == beginning || strings.HasPrefix(imported, strings.TrimSuffix(beginning, "/")+"/")
	}
	host, _, _ := strings.Cut(imported, "/")
	switch own, ours := strings.CutPrefix(imported, suite); {
	case ours:
		return slices.Contains(r.ours, own)
	case strings.Contains(host, "."):
		return slices.ContainsFunc(r.foreign, begins)
	}
	return !slices.ContainsFunc(r.never, begins)
}

// Catches a service that reaches into another one (a workspace builds that happily), and a dependency on the local stack. Tests are
// held to it as well: each module has to be tested by itself.
func TestServicesStandApartAndNobodyNeedsDeploy(t *testing.T) {
	t.Parallel()
	for _, tree := range []string{"pkg", "services", "migrations"} {
		for _, f := range goFiles(t, tree) {
			for _, imported := range f.imports {
				own, ours := strings.CutPrefix(imported, suite)
				switch {
				case !ours:
				case strings.HasPrefix(own, "deploy/"):
					t.Errorf("%s imports %q, but nobody may need the local stack: production has none", f.name, imported)
				case strings.HasPrefix(own, "services/") && module(own) != module(f.room):
					t.Errorf("%s imports %q, but services talk over NATS and PostgreSQL only, so that each can be deployed alone", f.name, imported)
				case tree == "migrations" && !strings.HasPrefix(own, "migrations"):
					t.Errorf("%s imports %q, but the schema depends on no program", f.name, imported)
				}
			}
		}
	}
}

// module is the first two elements of a folder: services/intake of services/intake/x.
func module(folder string) string {
	parts := strings.SplitN(folder, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

type goFile struct {
	name, room string // both from the top of the tree
	test       bool
	imports    []string
}

// goFiles reads the imports of all Go files in one part of the tree.
func goFiles(t *testing.T, tree string) []goFile {
	t.Helper()
	var files []goFile
	err := filepath.WalkDir(filepath.Join("..", tree), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".go" {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		f := goFile{name: strings.TrimPrefix(filepath.ToSlash(name), "../"), test: strings.HasSuffix(name, "_test.go")}
		f.room = path.Dir(f.name)
		for _, i := range parsed.Imports {
			imported, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, imported)
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if tree == "pkg" && len(files) < len(rules) {
		t.Fatalf("only %d Go files were found in %s", len(files), tree)
	}
	return files
}
