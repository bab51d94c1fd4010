package bottest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// memory is a listener of connections in memory, which tests with fake time require.
type memory struct {
	name   string
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

// memoryAddress is how the address of a server in memory ends.
const memoryAddress = ".memory:80"

// listeners has the open ones by their address.
var listeners sync.Map

// NewServer starts a server in memory that ends with the test. Dial connects to it.
func NewServer(t testing.TB, handler http.Handler) *httptest.Server {
	server := httptest.NewUnstartedServer(handler)
	server.Listener.Close()
	l := &memory{conns: make(chan net.Conn), closed: make(chan struct{})}
	l.name = fmt.Sprintf("%p", l) + memoryAddress
	l.close = sync.OnceFunc(func() {
		listeners.Delete(l.name)
		close(l.closed)
	})
	listeners.Store(l.name, l)
	server.Listener = l
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// Dial connects to a server in memory, or else through the network.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	found, ok := listeners.Load(address)
	if !ok && strings.HasSuffix(address, memoryAddress) {
		return nil, net.ErrClosed // a name server asked in a test with fake time could not be asked outside of it
	}
	if !ok {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}
	l := found.(*memory)
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept returns the next connection, net.ErrClosed once the listener is closed.
func (l *memory) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (l *memory) Close() error {
	l.close()
	return nil
}

// Addr implements net.Listener.
func (l *memory) Addr() net.Addr { return l }

// Network and String implement net.Addr.
func (l *memory) Network() string { return "memory" }

func (l *memory) String() string { return l.name }
