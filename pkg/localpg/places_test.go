package localpg

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFindPrograms(t *testing.T) {
	root := openDir(t)
	whole, other, half, closed := filepath.Join(root, "whole"), filepath.Join(root, "other"), filepath.Join(root, "half"), filepath.Join(root, "closed")
	for _, dir := range []string{whole, other, closed} {
		install(t, dir, "initdb", "postgres")
	}
	install(t, half, "initdb")
	linked := filepath.Join(root, "linked")
	if err := os.Mkdir(linked, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(whole, "initdb"), filepath.Join(linked, "initdb")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	as := account{name: "user somebody", uid: 4321, gid: 4321}
	for _, c := range []struct {
		name, named string
		usual       []string
		want, fails string
	}{
		{"the first that is whole", "", []string{"/none", half, whole, other}, whole, ""},
		{"through a symbolic link", "", []string{linked}, whole, ""},
		{"past one that is closed", "", []string{closed, other}, other, ""},
		{"the named one", other, []string{whole}, other, ""},
		{"the named one only", half, []string{whole}, "", "POSTGRES_BIN=" + half + " has no initdb and postgres"},
		{"only a closed one", "", []string{closed}, "", "user somebody, who has to run PostgreSQL here, cannot get into " + closed},
		{"none", "", []string{"/none"}, "", "run deploy/tools.sh"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := findPrograms(as, c.named, c.usual)
			if got != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%q, %v; want %q, an error with %q", got, err, c.want, c.fails)
			}
		})
	}
}

// As text, version 9 would come before 17.
func TestDebianPrefersTheNewest(t *testing.T) {
	root := openDir(t)
	for _, v := range []string{"9", "17", "15"} {
		install(t, filepath.Join(root, v, "bin"))
	}
	want := []string{root + "/17/bin", root + "/15/bin", root + "/9/bin"}
	if diff := cmp.Diff(want, debian(root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Tests run in the folder of their package, the tools lie at the root of the repository.
func TestToolsAreFoundFromBelow(t *testing.T) {
	root := openDir(t)
	install(t, filepath.Join(root, ".tools", "postgres", "bin"), "initdb", "postgres")
	install(t, filepath.Join(root, "pkg", "store"))
	t.Chdir(filepath.Join(root, "pkg", "store"))
	as := account{uid: 4321, gid: 4321}
	if got, err := findPrograms(as, "", tools()); err != nil || got != filepath.Join(root, ".tools", "postgres", "bin") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestEnters(t *testing.T) {
	root := openDir(t)
	inner := filepath.Join(root, "a", "b")
	install(t, inner)
	me := account{uid: uint32(os.Geteuid()), gid: 4321}
	for _, c := range []struct {
		mode os.FileMode
		as   account
		want bool
	}{
		{0o755, account{uid: 4321, gid: 4321}, true},
		{0o711, account{uid: 4321, gid: 4321}, true},
		{0o750, account{uid: 4321, gid: 4321}, false},
		{0o710, account{uid: 4321, gid: uint32(os.Getegid())}, true},
		{0o701, account{uid: 4321, gid: uint32(os.Getegid())}, false}, // a member of the group is not "the others"
		{0o655, me, false},
		{0o700, me, true},
	} {
		if err := os.Chmod(filepath.Join(root, "a"), c.mode); err != nil {
			t.Fatal(err)
		}
		if got := c.as.enters(inner); got != c.want {
			t.Errorf("mode %o, uid %d, gid %d: %v, want %v", c.mode, c.as.uid, c.as.gid, got, c.want)
		}
	}
}

// Root works in /root, where the user who runs PostgreSQL for it cannot go. The data has to be somewhere, and found
// there by the next start. To an ordinary user the closed folder is his own.
func TestFolderThatTheServerCannotEnter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() // 0700
	s := begin(t, Config{Dir: dir})
	ask(t, s, `CREATE TABLE kept (n integer)`)
	data := ask(t, s, `SHOW data_directory`)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		t.Cleanup(func() { os.RemoveAll(filepath.Dir(data)) })
	} else if data != filepath.Join(dir, "data") {
		t.Errorf("the data is in %s", data)
	}
	ask(t, begin(t, Config{Dir: dir}), `TABLE kept`)
}

func TestSweepTakesOnlyWhatNobodyOwns(t *testing.T) {
	base := openDir(t)
	long := time.Now().Add(-time.Hour)
	folders := map[string]bool{"abandoned": false, "young": true, "in-use": true, "framerun": true}
	for name := range folders {
		dir := filepath.Join(base, throwawayPrefix+name)
		if name == "framerun" {
			dir = filepath.Join(base, name)
		}
		install(t, filepath.Join(dir, "data"))
		if name == "in-use" {
			f, err := lockFolder(dir, false)
			if err != nil {
				t.Fatal(err)
			}
			defer f.close()
		}
		if name == "young" {
			continue
		}
		if err := os.Chtimes(dir, long, long); err != nil {
			t.Fatal(err)
		}
	}
	sweep(base)
	for name, want := range folders {
		found, err := filepath.Glob(filepath.Join(base, "*"+name))
		if err != nil || (len(found) == 1) != want {
			t.Errorf("%s: %v, %v; to be kept: %v", name, found, err, want)
		}
	}
}

// install makes a folder with programs in it that do nothing.
func install(t *testing.T, dir string, programs ...string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		if err := os.WriteFile(filepath.Join(dir, p), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
