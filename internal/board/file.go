package board

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A file that changes twice within a tick of its file system's clock has the same times after both changes. Kernels
// advance that clock at least every 10 ms; file systems without fractions of a second have ticks of up to two.
const (
	tick       = 20 * time.Millisecond
	coarseTick = 2 * time.Second
)

// identity changes with a file's content.
type identity struct {
	inode    uint64
	size     int64
	modified unix.Timespec
	changed  unix.Timespec // unlike modified, it cannot be set
}

func identityOf(info *unix.Stat_t) identity {
	return identity{info.Ino, info.Size, info.Mtim, info.Ctim}
}

// identify returns the identity of a regular file in dir, zero if there is none of that name.
func identify(dir *os.File, name string) (identity, error) {
	var info unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &info, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode&unix.S_IFMT != unix.S_IFREG {
		return identity{}, nil
	}
	return identityOf(&info), err
}

// tick returns the time within which two contents may have the same identity.
func (i identity) tick() time.Duration {
	if i.changed.Nsec == 0 && i.modified.Nsec == 0 {
		return coarseTick
	}
	return tick
}

// openFile opens a file in dir for reading. If the file has been replaced by a symbolic link or a pipe, it neither
// follows the one nor waits on the other.
func openFile(dir *os.File, name string) (fd int, err error) {
	return unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
}

// readInto reads up to size bytes from fd, into buffer if it has room for them.
func readInto(buffer []byte, fd, size int) ([]byte, error) {
	buffer = slices.Grow(buffer[:0], size)[:size]
	for read := 0; read < size; {
		n, err := unix.Read(fd, buffer[read:])
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return buffer[:read], nil // it was truncated meanwhile: the next scan sees another identity
		}
		read += n
	}
	return buffer, nil
}

// openStage opens a stage's directory, which must not be a symbolic link.
func openStage(path string) (*os.File, error) {
	return os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}
