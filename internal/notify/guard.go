package notify

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/upstream"
)

// Guard says which addresses messages may be sent to, besides public ones. Link-local ones and those of clouds'
// metadata are never among them.
type Guard struct{ Private, Loopback bool }

// innerNetworks are private networks that netip does not know as such.
var innerNetworks = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("fec0::/10"),
}

// check returns why nothing may be sent to an address, "" if it may. Without TLS only private and loopback addresses
// are allowed.
func (g Guard) check(a netip.Addr, plain bool) string {
	kind, a := upstream.CheckAddress(a)
	private := a.IsPrivate() || slices.ContainsFunc(innerNetworks, func(p netip.Prefix) bool { return p.Contains(a) })
	switch {
	case kind != "":
		return kind
	case a.IsLoopback() && !g.Loopback:
		return "loopback, which only a gateway that listens on loopback may use, or one with notifications.allow_private"
	case private && !g.Private:
		return "private, which needs notifications.allow_private"
	case plain && !private && !a.IsLoopback():
		return "public, which needs https"
	}
	return ""
}

// lookupLimit is how long looking up a name may take when a target is stored.
const lookupLimit = 3 * time.Second

// checkURL returns Invalid for an address to which nothing may be sent, as far as that is known beforehand: only names
// used without TLS are looked up.
func (g Guard) checkURL(ctx context.Context, u *url.URL) error {
	if port, err := strconv.ParseUint(cmp.Or(u.Port(), "443"), 10, 16); err != nil || port == 0 {
		return domain.Errorf(domain.Invalid, "url: the port must be from 1 to 65535")
	}
	host, plain := u.Hostname(), u.Scheme == "http"
	var addresses []netip.Addr
	if a, err := netip.ParseAddr(host); err == nil {
		addresses = append(addresses, a)
	} else if plain {
		ctx, cancel := context.WithTimeout(ctx, lookupLimit)
		defer cancel()
		if addresses, err = net.DefaultResolver.LookupNetIP(ctx, "ip", host); err != nil {
			return domain.WrapError(domain.Invalid, err, "url: needs https: the host could not be looked up")
		}
	}
	for _, a := range addresses {
		if kind := g.check(a, plain); kind != "" {
			return domain.Errorf(domain.Invalid, "url: address not allowed: %s", kind)
		}
	}
	return nil
}
