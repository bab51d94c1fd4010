//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// LockDir takes a lock on the directory itself without waiting. It returns ErrLocked.
func LockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return flock(f, dir)
}

// openLockFile opens or creates a lock file with private mode. It does not follow symbolic links, through which others
// who may write to the directory could get another file's mode changed.
func openLockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, privateFile)
	if errors.Is(err, unix.ELOOP) {
		return nil, &fs.PathError{Op: "lock", Path: path, Err: errors.New("is a symbolic link")}
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "lock", Path: path, Err: errNotRegular}
	}
	if err == nil {
		err = f.Chmod(privateFile)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// flock locks f, the lock file of path, and closes it if that fails.
func flock(f *os.File, path string) (unlock func(), err error) {
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	// unlock refers to f, so that the garbage collector does not close it while the lock is held. It releases the lock
	// explicitly, as a child process that is just being started may hold a copy of f.
	return func() { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN); f.Close() }, nil
}

// openRead opens the file at path for reading. It does not wait for the writer of a pipe.
func openRead(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
}

// SyncDir makes new names in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// OthersMay reports whether anybody but the owner has one of these permissions (4 to read, 2 to write) on a file.
func OthersMay(info fs.FileInfo, what fs.FileMode) bool {
	return info.Mode().Perm()&(what<<3|what) != 0
}

// IsOurs reports whether a file belongs to the user running this process, or to the owner of like.
func IsOurs(info, like fs.FileInfo) bool {
	owner := info.Sys().(*syscall.Stat_t).Uid
	return int(owner) == os.Geteuid() || owner == like.Sys().(*syscall.Stat_t).Uid
}
