package files

import (
	"errors"
	"path/filepath"
	"time"
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
// ErrLocked. The lock is one of the kernel's on the file path+".lock", so it is released when its holder dies.
func Lock(path string) (unlock func(), err error) {
	for until := time.Now().Add(lockWait); ; time.Sleep(lockRetry) {
		unlock, err := TryLock(path)
		if !errors.Is(err, ErrLocked) || time.Now().After(until) {
			return unlock, err
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
