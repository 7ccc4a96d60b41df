package localpg

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// programs are the installed PostgreSQL and the user that runs it.
type programs struct {
	dir string // where initdb and postgres are, symbolic links resolved
	as  account
}

// findPrograms is the folder of initdb and postgres: the named one and no other, or without a name the first of the
// usual ones that the account can get into.
func findPrograms(as account, named string, usual []string) (string, error) {
	candidates := usual
	if named != "" {
		candidates = []string{named}
	}
	var closed []string
	for _, dir := range candidates {
		bin, ok := holdsPrograms(dir)
		if ok && as.enters(bin) {
			return bin, nil
		}
		if ok {
			closed = append(closed, bin)
		}
	}
	switch {
	case len(closed) > 0:
		return "", fmt.Errorf("%s, who has to run PostgreSQL here, cannot get into %s: "+
			"install PostgreSQL for the whole machine (Debian: apt-get install postgresql), "+
			"set POSTGRES_BIN to a folder that everybody may enter, or start this as an ordinary user", as.name, closed[0])
	case named != "":
		return "", fmt.Errorf("POSTGRES_BIN=%s has no initdb and postgres: set it to the folder that has, or unset it", named)
	}
	return "", errors.New("no PostgreSQL found: run deploy/tools.sh at the root of the repository, or " +
		"install it (Debian: apt-get install postgresql), or set POSTGRES_BIN to the folder of initdb and postgres " +
		"(looked on PATH, in /usr/lib/postgresql/*/bin and in .tools/postgres/bin at or above the working directory)")
}

// holdsPrograms follows initdb to where it really is, since it finds its library and templates from there.
func holdsPrograms(dir string) (string, bool) {
	initdb, err := filepath.EvalSymlinks(filepath.Join(dir, "initdb"))
	if err != nil {
		return "", false
	}
	bin := filepath.Dir(initdb)
	_, err = exec.LookPath(filepath.Join(bin, "postgres"))
	return bin, err == nil
}

// usualPlaces are the folders of PATH, Debian's, and the repository's own.
func usualPlaces() []string {
	return slices.Concat(filepath.SplitList(os.Getenv("PATH")), debian("/usr/lib/postgresql"), tools())
}

// debian lists root/VERSION/bin, the highest version first.
func debian(root string) []string {
	dirs, _ := filepath.Glob(filepath.Join(root, "*", "bin")) // the pattern is a fixed one: no error
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	return dirs
}

func version(bin string) int {
	v, err := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	if err != nil {
		return 0
	}
	return v
}

// tools are the places where deploy/tools.sh puts PostgreSQL, as seen from anywhere inside the repository.
func tools() []string {
	dir, err := os.Getwd()
	if err != nil {
		return nil
	}
	var dirs []string
	for ; ; dir = filepath.Dir(dir) {
		dirs = append(dirs, filepath.Join(dir, ".tools", "postgres", "bin"))
		if dir == filepath.Dir(dir) {
			return dirs
		}
	}
}
