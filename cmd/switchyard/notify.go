package main

import (
	"net"
	"os"
)

// Messages to the service manager, see sd_notify(3).
const (
	ready    = "READY=1\n"
	stopping = "STOPPING=1\n"
)

// notify sends message to the service manager (systemd's Type=notify). It does nothing without one, and ignores errors.
func notify(message string) {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(message))
}
