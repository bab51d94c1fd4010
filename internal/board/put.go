package board

import (
	"bytes"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

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
	err := unchanged(dir, name, file)
	if err == nil && moves {
		err = renameNew(dir, name, target, name)
	}
	if err == nil && edited {
		if err = rename(target, temp, target, name); err != nil && moves {
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

func unchanged(dir *os.File, name string, file *storyFile) error {
	var info unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &info, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if identityOf(&info) != file.identity {
		return errChanged
	}
	return nil
}
