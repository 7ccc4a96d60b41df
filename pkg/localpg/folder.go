package localpg

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const throwawayPrefix = "framerun-postgres-throwaway-"

// folder is where one server keeps its data. While it is open no other Start can use it.
type folder struct {
	path      string
	throwaway bool
	lock      *os.File
}

func (f *folder) data() string {
	return filepath.Join(f.path, "data")
}

func openFolder(dir string, as account) (*folder, error) {
	if dir == "" {
		return openThrowaway(as)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if as.borrowed && !as.enters(dir) {
		if dir, err = elsewhere(dir); err != nil {
			return nil, err
		}
	}
	return lockFolder(dir, false)
}

// elsewhere is the folder for a dir that lies where the server's user cannot go: always the same for the same dir, and
// root's own, since under /var/tmp anybody could have made one of that name.
func elsewhere(dir string) (string, error) {
	sum := sha256.Sum256([]byte(dir))
	there := fmt.Sprintf("/var/tmp/framerun-postgres-%x", sum[:6])
	if err := os.Mkdir(there, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(there)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || info.Sys().(*syscall.Stat_t).Uid != 0 || info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("%s, which is to hold the data of %s, is not a folder of root alone: remove it", there, dir)
	}
	return there, os.Chmod(there, 0o755) // whatever the umask
}

func openThrowaway(as account) (*folder, error) {
	base := os.TempDir()
	if as.borrowed && !as.enters(base) {
		base = "/var/tmp"
	}
	sweep(base)
	dir, err := os.MkdirTemp(base, throwawayPrefix)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // the data folder inside is closed to others
		return nil, err
	}
	return lockFolder(dir, true)
}

// sweep removes the throwaway folders of processes that were killed before they could. A folder younger than a minute
// may be one whose owner has not locked it yet.
func sweep(base string) {
	dirs, _ := filepath.Glob(filepath.Join(base, throwawayPrefix+"*")) // at worst nothing is swept
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < time.Minute ||
			info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
			continue
		}
		if f, err := lockFolder(dir, true); err == nil {
			f.close()
		}
	}
}

// lockFolder takes the folder for this process. The kernel gives it free when the process ends, however that happens.
func lockFolder(dir string, throwaway bool) (*folder, error) {
	dir, err := filepath.EvalSymlinks(dir) // as the kernel will name the server's working directory
	if err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("another process runs a PostgreSQL on %s: stop it or choose another folder", dir)
	}
	return &folder{path: dir, throwaway: throwaway, lock: lock}, nil
}

// close gives the folder free, a throwaway one by removing it.
func (f *folder) close() error {
	var err error
	if f.throwaway {
		err = os.RemoveAll(f.path)
	}
	// Not left to Close: a child just being made by another goroutine holds a copy of the file for a moment.
	return errors.Join(err, syscall.Flock(int(f.lock.Fd()), syscall.LOCK_UN), f.lock.Close())
}
