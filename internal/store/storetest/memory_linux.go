package storetest

import (
	"sync"
	"syscall"
)

// memory returns a directory in memory if there is room, since SQLite waits for the disk at each commit, else "".
var memory = sync.OnceValue(func() string {
	const directory, room = "/dev/shm", 1 << 30
	var disk syscall.Statfs_t
	if syscall.Statfs(directory, &disk) != nil || disk.Bavail*uint64(disk.Bsize) < room {
		return ""
	}
	return directory
})
