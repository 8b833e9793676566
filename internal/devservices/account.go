package devservices

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

// account is a user a child runs as.
type account struct {
	name     string
	uid, gid uint32
}

func (a *account) credential() *syscall.Credential {
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

// postgresAccount is the user for initdb and postgres, which refuse to run as
// root (fergusstrange/embedded-postgres#17); nil when we are not root.
func postgresAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("reading the ids of user %s: %w", name, err)
		}
		return &account{name, uint32(uid), uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody to run it as")
}

// own gives a folder and all in it to the account.
func (a *account) own(folder string) error {
	if a == nil {
		return nil
	}
	return filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(a.uid), int(a.gid))
	})
}

// temporary makes the run's temporary folder. It is under base, or the
// system's, unless we are root and another user could not get there: then under
// the first usual place where he can.
func temporary(base string) (string, error) {
	if base == "" {
		base = os.TempDir()
	}
	if os.Geteuid() == 0 {
		for _, b := range []string{base, "/tmp", "/var/tmp", "/dev/shm"} {
			if passable(b) {
				base = b
				break
			}
		}
	}
	dir, err := os.MkdirTemp(base, "dedup-services-")
	if err != nil {
		return "", fmt.Errorf("making a temporary folder: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return "", fmt.Errorf("opening the temporary folder to its servers: %w", err)
	}
	return dir, nil
}

// passable reports whether every user may pass through the folder and all
// above it.
func passable(dir string) bool {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	if followed, err := filepath.EvalSymlinks(dir); err == nil {
		dir = followed
	}
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}
