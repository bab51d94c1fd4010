package main

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// descriptorLimit returns how many files and connections this process may have open: here memory is the limit.
func descriptorLimit() uint64 { return math.MaxUint64 }

func freeSpace(dir string) (free uint64, err error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	return free, windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
}

func writable(dir string) error {
	file, err := os.CreateTemp(dir, ".switchyard-*.tmp")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}
