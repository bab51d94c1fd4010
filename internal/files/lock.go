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

// ErrLocked is why a lock was refused: another process, or another holder in this one, has it.
var ErrLocked = errors.New("is locked by another process")

const (
	// lockWait is how long Lock waits for other holders, which hold it for one small write.
	lockWait = 10 * time.Second
	// lockRetry is the time between two tries; flock has no wait with a limit.
	lockRetry = 10 * time.Millisecond
)

// Lock takes the lock that guards writing the file at path, waiting for other holders for 10 s at most, then it
// returns ErrLocked. The lock is an flock of the file path+".lock", so the kernel frees it when its holder dies.
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

// TryLock is Lock without waiting.
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

// LockDir takes a lock on the directory itself, without waiting for another holder.
func LockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return flock(f, dir)
}

// openLockFile opens or makes a lock file for its owner only. It does not follow a link: whoever may write to the directory
// could have another file's mode changed by one.
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

// flock locks f, which stands for path, and closes it where that fails.
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
	// unlock refers to f, which keeps the collector from closing it while the lock is held.
	// It frees the lock itself: a process that is just being started may hold a copy of f until it runs its program.
	return func() { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN); f.Close() }, nil
}
