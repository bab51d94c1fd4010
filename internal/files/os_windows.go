package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// LockDir takes a lock for the directory without waiting. It returns ErrLocked. Windows locks files only: it is the
// file .lock in it.
func LockDir(dir string) (unlock func(), err error) {
	f, err := openLockFile(filepath.Join(dir, ".lock"))
	if err != nil {
		return nil, err
	}
	return flock(f, dir)
}

// openLockFile opens or creates a lock file. It does not follow symbolic links.
func openLockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|windows.O_FILE_FLAG_OPEN_REPARSE_POINT, privateFile)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(&fs.PathError{Op: "lock", Path: path, Err: errNotRegular}, err, f.Close())
	}
	return f, nil
}

// flock locks f, the lock file of path, and closes it if that fails.
func flock(f *os.File, path string) (unlock func(), err error) {
	const now = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), now, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		err = ErrLocked
	}
	if err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	return func() { f.Close() }, nil // closing unlocks; unlock refers to f, so that it is not closed before
}

func openRead(path string) (*os.File, error) { return os.Open(path) }

// SyncDir does nothing: directories cannot be synced here.
func SyncDir(string) error { return nil }

// OthersMay returns false: what others may do with a file follows from its directory here.
func OthersMay(fs.FileInfo, fs.FileMode) bool { return false }

// IsOurs returns true: owners cannot be told apart here.
func IsOurs(_, _ fs.FileInfo) bool { return true }
