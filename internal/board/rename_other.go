//go:build unix && !linux

package board

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNoReplace is for Linux only.
func renameNoReplace(*os.File, string, *os.File, string) error { return unix.ENOSYS }

func exchangeAt(*os.File, string, string) error { return errors.ErrUnsupported }
