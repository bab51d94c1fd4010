package main

import (
	"math"
	"sync"
	"syscall"

	"switchyard/internal/web"
)

// spareDescriptors are kept for what a process opens besides its clients' connections: files, the database, calls to others.
const spareDescriptors = 64

// clientConnections bounds those of all servers of this process, which share its descriptors.
var clientConnections = sync.OnceValue(func() *web.Connections {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return web.NewConnections(math.MaxInt32)
	}
	return web.NewConnections(max(spareDescriptors, int(limit.Cur)-spareDescriptors))
})
