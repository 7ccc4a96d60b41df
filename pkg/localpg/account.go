package localpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user that runs PostgreSQL, which refuses to be run by root.
type account struct {
	name     string
	uid, gid uint32
	borrowed bool // this process is root and lends itself out as another user
}

// whoRuns is the caller himself, or for root the user "postgres", or else "nobody".
func whoRuns() (account, error) {
	if uid := os.Geteuid(); uid != 0 {
		return account{name: "uid " + strconv.Itoa(uid), uid: uint32(uid), gid: uint32(os.Getegid())}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(errUID, errGID); err != nil {
			return account{}, fmt.Errorf("reading user %s: %w", name, err)
		}
		return account{name: "user " + name, uid: uint32(uid), gid: uint32(gid), borrowed: true}, nil
	}
	return account{}, errors.New("PostgreSQL refuses to be run by root and there is neither a user postgres nor nobody " +
		"to run it: add one (useradd --system postgres) or start this as an ordinary user")
}

// attributes make a child run as the account, in a process group of its own (so that Ctrl-C ends what uses the database
// before the database), and die by sig when the thread that started it does.
func (a account) attributes(sig syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: sig}
	if a.borrowed {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}

// own hands a folder and all in it to the account, if it is not the account's already.
func (a account) own(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !a.borrowed || info.Sys().(*syscall.Stat_t).Uid == a.uid {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(a.uid), int(a.gid))
	})
}

// enters tells whether the account can get into a folder, given only the permission bits on the way.
func (a account) enters(dir string) bool {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() || !a.passes(info) {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

func (a account) passes(info fs.FileInfo) bool {
	stat := info.Sys().(*syscall.Stat_t)
	switch {
	case stat.Uid == a.uid:
		return stat.Mode&0o100 != 0
	case stat.Gid == a.gid:
		return stat.Mode&0o010 != 0
	default:
		return stat.Mode&0o001 != 0
	}
}
