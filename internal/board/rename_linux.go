package board

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func renameNoReplace(from *os.File, name string, to *os.File, newName string) error {
	return unix.Renameat2(int(from.Fd()), name, int(to.Fd()), newName, unix.RENAME_NOREPLACE)
}

// exchangeAt exchanges the names of two files in a directory in one step. Its error is errors.ErrUnsupported if the
// file system cannot.
func exchangeAt(dir *os.File, name, other string) error {
	fd := int(dir.Fd())
	err := unix.Renameat2(fd, name, fd, other, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}
