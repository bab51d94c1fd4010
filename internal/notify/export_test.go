package notify

import (
	"context"
	"net"
	"net/netip"
)

var Sign = sign

func (g Guard) Check(a netip.Addr, plain bool) string { return g.check(a, plain) }

// NewOver returns a sender over one connection.
func NewOver(c net.Conn) *Sender {
	return New(Options{Dial: func(context.Context, string, string) (net.Conn, error) { return c, nil }})
}
