package main

import (
	"net"
	"os"
)

// notifyReady tells a service manager that asked for it (systemd's Type=notify, sd_notify(3)) that we serve.
// Without one, and when it does not listen, nothing happens.
func notifyReady() {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("READY=1\n"))
}
