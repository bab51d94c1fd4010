package main

import (
	"math"
	"sync"
	"syscall"

	"switchyard/internal/web"
)

// spareDescriptors is the number of descriptors reserved for files, the database and outgoing calls.
const spareDescriptors = 64

// clientConnections limits the connections of all servers in this process, which share its descriptors.
var clientConnections = sync.OnceValue(func() *web.Connections {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return web.NewConnections(math.MaxInt32)
	}
	return web.NewConnections(max(spareDescriptors, int(limit.Cur)-spareDescriptors))
})
