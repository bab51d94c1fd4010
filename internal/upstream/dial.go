package upstream

import (
	"fmt"
	"net/netip"
	"syscall"
)

// addressError is the refusal to connect to an address where no project server can be.
type addressError struct{ kind string }

func (e addressError) Error() string { return "address not allowed: " + e.kind }

// allowAddress is a net.Dialer's Control: it sees the address after resolution, so that no name, number or redirect
// leads around it.
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

// metadata are the addresses besides link-local ones where clouds answer with their machines' secrets.
var metadata = map[netip.Addr]bool{
	netip.MustParseAddr("fd00:ec2::254"):   true, // Amazon
	netip.MustParseAddr("fd20:ce::254"):    true, // Google
	netip.MustParseAddr("100.100.100.200"): true, // Alibaba
	netip.MustParseAddr("168.63.129.16"):   true, // Azure
	netip.MustParseAddr("192.0.0.192"):     true, // Oracle
}

// thisNetwork is 0.0.0.0/8, which Linux takes for this host in part.
var thisNetwork = netip.MustParsePrefix("0.0.0.0/8")

// forbidden says of what kind an address is that is never connected to, "" for any other.
func forbidden(a netip.Addr) string {
	a = embedded(a.WithZone("").Unmap())
	switch {
	case a.IsUnspecified() || thisNetwork.Contains(a):
		return "unspecified"
	case metadata[a]:
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

// carriers are the IPv6 networks whose addresses hold an IPv4 address, and the byte where it begins.
var carriers = []struct {
	network netip.Prefix
	at      int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/96"), 12},  // NAT64, local use, as far as it can be told
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // IPv4-translated
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4
	{netip.MustParsePrefix("::/96"), 12},           // IPv4-compatible
}

// embedded returns the IPv4 address that a holds, a itself when it holds none.
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
