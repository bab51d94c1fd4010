package board

import (
	"os"

	"golang.org/x/sys/unix"
)

func renameNoReplace(from *os.File, name string, to *os.File, newName string) error {
	return unix.Renameat2(int(from.Fd()), name, int(to.Fd()), newName, unix.RENAME_NOREPLACE)
}
