package board

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"time"
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
	modified int64 // in nanoseconds
	changed  int64 // unlike modified, it cannot be set where the system has it
}

// tick returns the time within which two contents may have the same identity.
func (i identity) tick() time.Duration {
	if i.changed%int64(time.Second) == 0 && i.modified%int64(time.Second) == 0 {
		return coarseTick
	}
	return tick
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
	file, err := createAt(dir, name)
	if err != nil {
		return "", err
	}
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
		if err = replaceAt(target, temp, name); err != nil && moves {
			err = errors.Join(err, renameNew(target, name, dir, name))
		}
	}
	if err != nil && edited {
		return errors.Join(err, removeAt(target, temp))
	}
	if err == nil && (moves || edited) {
		err = errors.Join(syncDir(target), syncDir(dir))
	}
	return err
}
