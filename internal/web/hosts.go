package web

import (
	"net"
	"net/netip"
	"os"
	"strings"
)

// hosts are the names, in lower case, under which the server answers besides IP literals and localhost.
type hosts map[string]bool

func hostSet(names []string) hosts {
	set := hosts{}
	for _, name := range names {
		set[strings.ToLower(strings.TrimSuffix(name, "."))] = true
	}
	if own, err := os.Hostname(); err == nil && own != "" {
		set[strings.ToLower(own)] = true
	}
	return set
}

// has reports whether a Host header names us, with any port.
func (h hosts) has(host string) bool {
	if strings.Contains(host, ":") { // else there is no port, and saying so would take an allocation
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || h[host] {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}
