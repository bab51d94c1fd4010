package main

import (
	"net"
	"os"
)

// What a service manager is told (sd_notify(3)).
const (
	ready    = "READY=1\n"
	stopping = "STOPPING=1\n"
)

// notify sends message to a service manager that asked for it (systemd's Type=notify). Without one, and when it does not
// listen, nothing happens.
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
