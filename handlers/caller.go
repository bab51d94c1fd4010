package handlers

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

var loopback4 = netip.MustParsePrefix("127.0.0.0/8")

// callers finds out where requests come from. X-Forwarded-For counts only if a trusted proxy sent it: anybody can send
// it.
type callers struct{ trustedProxies []netip.Prefix }

// networkOf returns the range of addresses that counts as one caller: an IPv4 address, all of 127.0.0.0/8, or a /64 of
// IPv6.
func (c callers) networkOf(r *http.Request) netip.Prefix {
	from := c.address(r)
	switch {
	case !from.IsValid():
		return netip.Prefix{}
	case loopback4.Contains(from):
		return loopback4
	case from.Is4():
		return netip.PrefixFrom(from, 32)
	}
	return netip.PrefixFrom(from, 64).Masked()
}

// address returns the peer's address, or, if the peer is a trusted proxy, the one that it forwards.
func (c callers) address(r *http.Request) netip.Addr {
	from := parseAddress(r.RemoteAddr)
	if !c.trusts(from) {
		return from
	}
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(forwarded) {
		next := parseAddress(strings.TrimSpace(text))
		if !next.IsValid() {
			break
		}
		if from = next; !c.trusts(from) {
			break
		}
	}
	return from
}

func (c callers) trusts(from netip.Addr) bool {
	return slices.ContainsFunc(c.trustedProxies, func(p netip.Prefix) bool { return p.Contains(from) })
}

// parseAddress parses an address with or without a port. The result is invalid if text is neither.
func parseAddress(text string) netip.Addr {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr().Unmap().WithZone("")
	}
	address, _ := netip.ParseAddr(strings.Trim(text, "[]"))
	return address.Unmap().WithZone("")
}
