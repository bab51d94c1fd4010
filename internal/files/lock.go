package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked is returned when another process, or another holder in this one, has the lock.
var ErrLocked = errors.New("is locked by another process")

const (
	// lockWait is how long Lock waits for other holders, each of which holds it for one small write.
	lockWait = 10 * time.Second
	// lockRetry is the time between two attempts: flock has no timeout.
	lockRetry = 10 * time.Millisecond
)

// Lock takes the lock for writing the file at path. It waits for other holders for at most 10 s and then returns
// ErrLocked. The lock is an flock of the file path+".lock", so the kernel releases it when its holder dies.
func Lock(path string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	for {
		unlock, err := TryLock(path)
		if !errors.Is(err, ErrLocked) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(lockRetry):
		}
	}
}

// TryLock is Lock without waiting. It returns ErrLocked.
func TryLock(path string) (unlock func(), err error) {
	target, err := resolve(path)
	if err != nil {
		return nil, err
	}
	if err := MakePrivateDir(filepath.Dir(target)); err != nil {
		return nil, err
	}
	f, err := openLockFile(target + ".lock")
	if err != nil {
		return nil, err
	}
	return flock(f, path)
}

// LockDir takes a lock on the directory itself without waiting. It returns ErrLocked.
func LockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return flock(f, dir)
}

// openLockFile opens or creates a lock file with private mode. It does not follow symbolic links, with which others who
// may write to the directory could have another file's mode changed.
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
