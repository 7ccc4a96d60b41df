package storetest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"framerun.dev/migrations"
	"framerun.dev/migrations/platform"
	"github.com/google/go-cmp/cmp"
)

// newest is the number of the last file in a folder of migrations.
func newest(t *testing.T, folder string) int64 {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", folder, "0*.sql"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no migrations in %s: %v", folder, err)
	}
	number, err := strconv.ParseInt(filepath.Base(slices.Max(files))[:5], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// Several replicas may start at once: each of them must find the database migrated, none may fail.
func TestConcurrentUps(t *testing.T) {
	t.Parallel()
	url := empty(t)
	if err := platform.Up(t.Context(), connect(t, url)); err != nil {
		t.Fatal(err)
	}
	const starts = 4
	ended := make(chan error, starts)
	for range starts {
		db := connect(t, url)
		go func() { ended <- migrations.Up(t.Context(), db) }()
	}
	for range starts {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if v, err := migrations.Version(t.Context(), connect(t, url)); err != nil || v != newest(t, "migrations") {
		t.Errorf("version %d, %v; want %d", v, err, newest(t, "migrations"))
	}
}

// A second Up must leave the runs that are there alone, a second Seed what has changed since.
func TestUpAndSeedAgain(t *testing.T) {
	t.Parallel()
	db := connect(t, New(t))
	for _, s := range []string{insert("wf2des", row{}), `UPDATE page_import SET status = '2'`} {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if err := platform.Up(t.Context(), db); err != nil {
		t.Error(err)
	}
	if err := migrations.Up(t.Context(), db); err != nil {
		t.Error(err)
	}
	if err := platform.Seed(t.Context(), db); err != nil {
		t.Error(err)
	}
	got := texts(t, db, `SELECT 'run ' || id FROM wf2des UNION ALL SELECT DISTINCT 'import ' || status FROM page_import`)
	if diff := cmp.Diff([]string{"run w", "import 2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The read-only role of query asks for the version too.
func TestVersionOnlyReads(t *testing.T) {
	t.Parallel()
	db := connect(t, empty(t))
	db.SetMaxOpenConns(1) // one session, which remembers this:
	if _, err := db.ExecContext(t.Context(), `SET default_transaction_read_only = on`); err != nil {
		t.Fatal(err)
	}
	if v, err := migrations.Version(t.Context(), db); err != nil || v != 0 {
		t.Errorf("version %d, %v; want 0", v, err)
	}
	if v, err := platform.Version(t.Context(), db); err != nil || v != 0 {
		t.Errorf("platform version %d, %v; want 0", v, err)
	}
}

// Without the stand-ins the suite's migrations must not succeed: their references would hang in the air.
func TestUpNeedsThePlatform(t *testing.T) {
	t.Parallel()
	db := connect(t, empty(t))
	if err := migrations.Up(t.Context(), db); err == nil {
		t.Error("the suite's tables stand without the platform's")
	}
}

func TestMigrateCommand(t *testing.T) {
	t.Parallel()
	url := empty(t)
	bin := t.TempDir() + "/migrate"
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "framerun.dev/migrations/migrate").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	suite, stood := newest(t, "migrations"), newest(t, "migrations/platform")
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{nil, "migrate: the platform's tables are not there: this is not the platform's database, or for local use make the stand-ins first: make migrate PLATFORM=yes\n", 1},
		{[]string{"-platform"}, fmt.Sprintf("platform: version %d, was 0\nsuite: version %d, was 0\n", stood, suite), 0},
		{nil, fmt.Sprintf("suite: version %d, nothing to do\n", suite), 0},
	} {
		out, code := runCommand(t.Context(), url, bin, c.args...)
		if diff := cmp.Diff(c.want, out); diff != "" || code != c.code {
			t.Errorf("%v: exit %d (-want +got):\n%s", c.args, code, diff)
		}
	}
}

func runCommand(ctx context.Context, url, bin string, args ...string) (string, int) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+url)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return err.Error(), -1
	}
	return out.String(), cmd.ProcessState.ExitCode()
}
