package upstream

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// addressError refuses to connect to an address at which there can be no project server.
type addressError struct{ kind string }

func (e addressError) Error() string { return "address not allowed: " + e.kind }

// allowAddress is a net.Dialer's Control: it gets the resolved address, so that no name, spelling or redirect
// bypasses it.
func allowAddress(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %s: %w", address, err)
	}
	if kind := forbidden(target.Addr()); kind != "" {
		return addressError{kind}
	}
	return nil
}

// metadata are the addresses, besides link-local ones, of clouds' metadata services, which hand out secrets.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"),      // Amazon
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google
	netip.MustParsePrefix("fd00:42::42/128"),    // Scaleway
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle
}

// thisNetwork is 0.0.0.0/8, part of which Linux treats as this host.
var thisNetwork = netip.MustParsePrefix("0.0.0.0/8")

// forbidden returns the kind of a forbidden address, "" for any other.
func forbidden(a netip.Addr) string {
	a = embedded(a.WithZone("").Unmap())
	switch {
	case a.IsUnspecified() || thisNetwork.Contains(a):
		return "unspecified"
	case slices.ContainsFunc(metadata, func(p netip.Prefix) bool { return p.Contains(a) }):
		return "cloud metadata"
	case a.IsLinkLocalUnicast():
		return "link-local"
	case a.IsMulticast():
		return "multicast"
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "broadcast"
	}
	return ""
}

// carriers are the IPv6 networks whose addresses contain an IPv4 address, and the byte at which it begins.
var carriers = []struct {
	network netip.Prefix
	at      int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/96"), 12},  // NAT64, local use, in its usual form
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // IPv4-translated
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4
	{netip.MustParsePrefix("::/96"), 12},           // IPv4-compatible
}

// embedded returns the IPv4 address that a contains, or a itself.
func embedded(a netip.Addr) netip.Addr {
	if !a.Is6() || a.IsUnspecified() || a.IsLoopback() {
		return a
	}
	bytes := a.As16()
	for _, c := range carriers {
		if c.network.Contains(a) {
			return netip.AddrFrom4([4]byte(bytes[c.at : c.at+4]))
		}
	}
	return a
}
