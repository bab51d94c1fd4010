package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// limitSilence limits how long sent data may be unacknowledged, which keep-alive does not.
func limitSilence(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silenceLimit.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return failed
}
