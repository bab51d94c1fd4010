package web

import (
	"net"
	"net/netip"
	"os"
	"strings"
)

// hosts is the set of names, in lower case, that the server answers to besides IP addresses and localhost.
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

// has reports whether a Host header names this server, with or without a port.
func (h hosts) has(host string) bool {
	if strings.Contains(host, ":") { // SplitHostPort would allocate its error for a missing port
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
