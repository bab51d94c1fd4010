package handlers

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"switchyard/internal/config"
	"switchyard/internal/domain"
)

var loopback4 = netip.MustParsePrefix("127.0.0.0/8")

// callers finds out where requests come from, and who makes those for which a proxy names a user. X-Forwarded-For and
// the headers with users and groups count only from a trusted proxy: anybody can send them.
type callers struct{ *config.Login }

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
	return slices.ContainsFunc(c.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(from) })
}

// parseAddress parses an address with or without a port. The result is invalid if text is neither.
func parseAddress(text string) netip.Addr {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr().Unmap().WithZone("")
	}
	address, _ := netip.ParseAddr(strings.Trim(text, "[]"))
	return address.Unmap().WithZone("")
}

// clean removes the headers from requests that did not come through a trusted proxy.
func (c callers) clean(next http.Handler) http.Handler {
	if c.UserHeader == "" && c.GroupsHeader == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.trusts(parseAddress(r.RemoteAddr)) {
			r.Header.Del(c.UserHeader)
			r.Header.Del(c.GroupsHeader)
		}
		next.ServeHTTP(w, r)
	})
}

// actor returns the caller whom a proxy names. It returns Unauthorized if there is none, and Forbidden for a user
// without a role. More than one name counts as none: the proxy may have added its own to one that the caller sent.
func (c callers) actor(r *http.Request) (actor domain.Actor, err error) {
	names := r.Header.Values(c.UserHeader)
	if !c.HasProxyLogin() || len(names) != 1 || names[0] == "" {
		return actor, unauthorized()
	}
	var groups []string
	for group := range strings.SplitSeq(strings.Join(r.Header.Values(c.GroupsHeader), ","), ",") {
		if group = strings.TrimSpace(group); group != "" {
			groups = append(groups, group)
		}
	}
	actor = domain.Actor{
		Who: domain.CutText(strings.ToValidUTF8(names[0], "\uFFFD")), Via: domain.ViaProxy, Account: "proxy " + names[0],
		Role: c.Roles.Of(groups, names[0]),
	}
	if actor.Role == "" {
		return domain.Actor{}, domain.Errorf(domain.Forbidden,
			"You are %s, but have no access to this gateway. Ask its administrator for a role.", actor.Who)
	}
	return actor, nil
}
