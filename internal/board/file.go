package board

import (
	"bytes"
	"crypto/rand"
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

// tempPrefix and tempSuffix mark the names of temporary files. The leading dot keeps them off the board.
const (
	tempPrefix = ".switchyard-"
	tempSuffix = ".tmp"
)

// writeTemp writes content to a new file in dir, syncs it to disk and returns its name. like, if not nil,
// is the file that it will replace: its mode and, where possible, its owner are kept.
func writeTemp(dir *os.File, content []byte, like *storyFile) (name string, err error) {
	name = tempPrefix + rand.Text() + tempSuffix
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC,
		0o666)
	if err != nil {
		return "", err
	}
	file := os.NewFile(uintptr(fd), name)
	if like != nil {
		_ = file.Chown(like.owner, like.group) // only root is permitted to; without it the file still works
		err = file.Chmod(like.mode)
	}
	if err == nil {
		_, err = file.Write(content)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, removeAt(dir, name))
	}
	return name, nil
}

func removeAt(dir *os.File, name string) error { return unix.Unlinkat(int(dir.Fd()), name, 0) }

// renameNew renames a file without overwriting another: it returns an error that is fs.ErrExist when the new name is
// taken. If the file system cannot do this in one step, the file has both names for a moment.
func renameNew(from *os.File, name string, to *os.File, newName string) error {
	err := renameNoReplace(from, name, to, newName)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	return linkAndUnlink(from, name, to, newName)
}

func linkAndUnlink(from *os.File, name string, to *os.File, newName string) error {
	if err := unix.Linkat(int(from.Fd()), name, int(to.Fd()), newName, 0); err != nil {
		return err
	}
	return removeAt(from, name)
}

// sweepTemp removes the temporary files that a killed process has left in the stages of dir.
func sweepTemp(dir string) error {
	root, err := os.OpenRoot(dir) // a stage may be a symbolic link to elsewhere
	if err != nil {
		return err
	}
	defer root.Close()
	names, err := fs.Glob(root.FS(), "*/"+tempPrefix+"*"+tempSuffix)
	for _, name := range names {
		if removeErr := root.Remove(name); !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
	}
	return err
}

// put replaces the file's content and moves it from dir to target, which may be the same. It fails if the file is no
// longer the one that was read, and overwrites no other file. If the process is killed meanwhile, the file has
// either the old content or the new, in one of the two directories.
func put(dir, target *os.File, name string, file *storyFile, content []byte) error {
	moves, edited := target != dir, !bytes.Equal(content, file.content)
	temp := ""
	if edited {
		var err error
		if temp, err = writeTemp(target, content, file); err != nil {
			return err
		}
	}
	now, err := identify(dir, name)
	if err == nil && now != file.identity {
		err = errChanged
	}
	if err == nil && moves {
		err = renameNew(dir, name, target, name)
	}
	if err == nil && edited {
		if err = unix.Renameat(int(target.Fd()), temp, int(target.Fd()), name); err != nil && moves {
			err = errors.Join(err, renameNew(target, name, dir, name))
		}
	}
	if err != nil && edited {
		return errors.Join(err, removeAt(target, temp))
	}
	if err == nil && (moves || edited) {
		err = errors.Join(target.Sync(), dir.Sync())
	}
	return err
}
