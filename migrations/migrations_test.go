package migrations

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// Old and new code run on the same database during a deploy, so there is no way back to go: a down-script would
// be code that nobody runs until it destroys something. A gap or a doubled number would be applied in the wrong order.
func TestFilesAreNumberedAndForwardOnly(t *testing.T) {
	for _, dir := range []string{".", "platform"} {
		names, err := fs.Glob(os.DirFS(dir), "*.sql")
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(names), err)
		}
		for i, name := range names {
			if want := fmt.Sprintf("%05d_", i+1); !strings.HasPrefix(name, want) {
				t.Errorf("%s/%s: its number should be %s", dir, name, want)
			}
			text, err := fs.ReadFile(os.DirFS(dir), name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), "-- +goose Up\n") || strings.Contains(string(text), "+goose Down") {
				t.Errorf("%s/%s: wants an Up section and no Down section", dir, name)
			}
		}
	}
}
