package waittest

import "net"

// Listener is a listener of in-memory connections, as tests with fake time require. It accepts the connections sent to
// it.
type Listener chan net.Conn

// Accept returns the next connection, net.ErrClosed once the channel is closed.
func (l Listener) Accept() (net.Conn, error) {
	conn, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

// Close does nothing: close the channel instead.
func (l Listener) Close() error { return nil }

// Addr implements net.Listener.
func (l Listener) Addr() net.Addr { return &net.UnixAddr{} }
