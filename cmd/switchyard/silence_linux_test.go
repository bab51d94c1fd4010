package main

import (
	"log/slog"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAConnectionThatAcknowledgesNothingEnds: the system ends it within 30 seconds, whether something was sent or not. That it does
// cannot be seen without a network that loses everything.
func TestAConnectionThatAcknowledgesNothingEnds(t *testing.T) {
	for _, address := range []string{"localhost:0", "127.0.0.1:0"} {
		listeners, err := listen(slog.New(slog.DiscardHandler), address)
		if err != nil {
			t.Fatal(err)
		}
		defer closeAll(listeners)
		for _, l := range listeners {
			client, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			served, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer served.Close()
			raw, err := served.(*net.TCPConn).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			option := map[string]int{}
			if err := raw.Control(func(fd uintptr) {
				for name, number := range map[string]int{
					"user timeout": unix.TCP_USER_TIMEOUT, "idle": unix.TCP_KEEPIDLE, "interval": unix.TCP_KEEPINTVL, "count": unix.TCP_KEEPCNT,
				} {
					option[name], _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, number)
				}
			}); err != nil {
				t.Fatal(err)
			}
			asked := time.Duration(option["idle"]+option["interval"]*option["count"]) * time.Second
			if option["user timeout"] != 30_000 || option["idle"] == 0 || asked > 30*time.Second {
				t.Errorf("%s: %v", l.Addr(), option)
			}
		}
	}
}
