package board

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

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
