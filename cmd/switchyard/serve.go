package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"switchyard/internal/web"
)

const (
	// drainLimit is how long a stopping server waits for its requests. The process must end within 10 s; the rest of that
	// time is for its loops and for closing.
	drainLimit = 9 * time.Second
	// headerLimit is how long a client may take to send a request's headers.
	headerLimit = 10 * time.Second
	// idleLimit is longer than the console's polling interval, so that its polls share a connection.
	idleLimit = 2 * time.Minute
	// maxHeader is the size limit of a request's headers, in bytes; larger ones are answered 431.
	maxHeader = 64 << 10
)

// newLogger returns a logger that writes messages of level ("info") and above to w in format, "text" or "json".
func newLogger(w io.Writer, format, level string) *slog.Logger {
	stdlog.SetOutput(io.Discard) // net/http logs there what project servers send unasked
	var options slog.HandlerOptions
	var least slog.Level
	if least.UnmarshalText([]byte(level)) == nil { // the configuration has checked it
		options.Level = least
	}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, &options))
	}
	return slog.New(slog.NewTextHandler(w, &options))
}

// silenceLimit is how long the other side of a connection, such as a sleeping laptop, may acknowledge nothing before
// the connection is ended: an answer that people give must not be written to nobody.
const silenceLimit = 30 * time.Second

func listenTCP(network, address string) (net.Listener, error) {
	config := net.ListenConfig{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silenceLimit / 2, Interval: silenceLimit / 6, Count: 3},
		Control:         limitSilence,
	}
	return config.Listen(context.Background(), network, address)
}

// listen opens the listeners of address (HOST:PORT). localhost is both 127.0.0.1 and ::1, on the same port: another
// program on ::1 would get what browsers send to http://localhost. On a machine without IPv6 it is 127.0.0.1 alone,
// which is logged.
func listen(log *slog.Logger, address string) ([]net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if host == "localhost" {
		return listenLocalhost(log, port)
	}
	network := "tcp"
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
		network = "tcp4" // Go would listen on all IPv6 addresses as well
	}
	listener, err := listenTCP(network, address)
	if err != nil {
		return nil, notListening(err)
	}
	return []net.Listener{listener}, nil
}

// portTries is how many free IPv4 ports are tried, since each may be in use on IPv6.
const portTries = 10

func listenLocalhost(log *slog.Logger, port string) ([]net.Listener, error) {
	for try := 1; ; try++ {
		v4, err := listenTCP("tcp4", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			return nil, notListening(err)
		}
		v6, err := listenTCP("tcp6", net.JoinHostPort("::1", strconv.Itoa(portOf(v4))))
		switch {
		case err == nil:
			return []net.Listener{v4, v6}, nil
		case errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT):
			log.Warn("this machine has no IPv6: serving on 127.0.0.1 only")
			return []net.Listener{v4}, nil
		}
		v4.Close()
		if port != "0" || try == portTries {
			return nil, notListening(err)
		}
	}
}

// notListening adds to the error of an address that cannot be listened on what to do about it.
func notListening(err error) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = ": another program listens there; end it, or choose another address with --listen"
	case errors.Is(err, syscall.EACCES):
		hint = ": choose a port from 1024 on with --listen"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = ": this machine has no such address; choose another one with --listen"
	}
	return fmt.Errorf("%w%s", err, hint)
}

func portOf(listener net.Listener) int { return listener.Addr().(*net.TCPAddr).Port }

func baseURL(address string, listeners []net.Listener) string {
	host, _, err := net.SplitHostPort(address)
	if ip, ipErr := netip.ParseAddr(host); err != nil || host == "" || ipErr == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return httpURL(host, strconv.Itoa(portOf(listeners[0])))
}

// stoppedAt is the cause of a context that ends later than the process was asked to stop.
type stoppedAt struct{ time time.Time }

func (s stoppedAt) Error() string { return "asked to stop at " + s.time.String() }

// stopTime returns when the process was asked to stop: the time in ctx's cause if it is a stoppedAt, else now.
func stopTime(ctx context.Context) time.Time {
	if later, ok := errors.AsType[stoppedAt](context.Cause(ctx)); ok {
		return later.time
	}
	return time.Now()
}

// serve serves handler on listeners until ctx ends. Then it accepts no new requests, ends long polls, and returns when
// the other requests have ended, or drainLimit after the process was asked to stop.
func serve(ctx context.Context, log *slog.Logger, listeners []net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerLimit,
		IdleTimeout:       idleLimit,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return web.WithStopping(context.Background(), ctx) },
		ConnContext:       clientConnections().Context,
		ConnState:         clientConnections().Track,

		DisableGeneralOptionsHandler: true, // it would answer OPTIONS * before any guard
	}
	failed := make(chan error, len(listeners))
	for _, listener := range listeners {
		go func() { failed <- server.Serve(listener) }()
	}
	select {
	case err := <-failed: // one failed listener stops them all
		server.Close()
		return err
	case <-ctx.Done():
	}
	limit, cancel := context.WithDeadline(context.Background(), stopTime(ctx).Add(drainLimit))
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		log.Warn("some requests did not end in time and were cut off")
		server.Close()
	}
	return nil
}

// spareDescriptors is the number of descriptors reserved for files, the database and outgoing calls, or half of all if
// there are fewer than twice as many.
const spareDescriptors = 64

// clientConnections limits the connections of all servers in this process, which share its descriptors.
var clientConnections = sync.OnceValue(func() *web.Connections {
	limit := descriptorLimit()
	if limit > math.MaxInt32 {
		return web.NewConnections(math.MaxInt32)
	}
	return web.NewConnections(max(int(limit)/2, int(limit)-spareDescriptors))
})

// Messages to the service manager, see sd_notify(3).
const (
	ready    = "READY=1\n"
	stopping = "STOPPING=1\n"
)

// tellService sends message to the service manager (systemd's Type=notify). It does nothing without one, and ignores
// errors.
func tellService(message string) {
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
