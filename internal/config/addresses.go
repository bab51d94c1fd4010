package config

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"switchyard/internal/domain"
)

func isAddress(to *string) func([]string) error {
	return func(values []string) error {
		host, port, err := net.SplitHostPort(values[0])
		if err != nil {
			return fmt.Errorf("%q is not HOST:PORT, such as localhost:3000 or [::1]:3000", values[0])
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return errors.New("the port must be a number from 0 to 65535")
		}
		if _, err := netip.ParseAddr(host); err != nil && host != "" && !isHostName(host) {
			return fmt.Errorf("%q is not a host name or IP address", host)
		}
		*to = net.JoinHostPort(strings.ToLower(host), port)
		return nil
	}
}

// onLoopback reports whether a listener on address can be reached from this machine only.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// isHostName reports whether s is a host name: at most 253 letters, digits, dots and hyphens, and the underscores that
// some networks use.
func isHostName(s string) bool {
	return len(strings.TrimSuffix(s, ".")) <= 253 && hostName.MatchString(s)
}

// hostName does not check the length: a bound would compile to 250 copies of the class.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?\.?$`)

func isHosts(to *[]string) func([]string) error {
	return func(values []string) error {
		for _, value := range values {
			if _, err := netip.ParseAddr(value); err != nil && (!isHostName(value) || strings.Contains(value, "..")) {
				return fmt.Errorf("%q is not a host name (without scheme, port and wildcards; other scripts as xn--…)", value)
			}
		}
		*to = values
		return nil
	}
}

func isURL(to *string) func([]string) error {
	return func(values []string) error {
		u, err := url.Parse(values[0])
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
			return errors.New("must be an absolute http or https address")
		case u.User != nil || strings.Contains(values[0], "#"):
			return errors.New("must not contain a user name, a password or a fragment")
		}
		*to = values[0]
		return nil
	}
}

// isPlainURL takes an address without a query, as paths will be appended to it.
func isPlainURL(to *string) func([]string) error {
	return func(values []string) error {
		if strings.Contains(values[0], "?") {
			return errors.New("must not contain a query")
		}
		return isURL(to)(values)
	}
}

// isDatabase takes the address of a PostgreSQL database. Its errors do not quote the address, which may hold a password.
func isDatabase(to *domain.Secret) func([]string) error {
	return func(values []string) error {
		address, err := url.Parse(values[0])
		scheme, _, _ := strings.Cut(values[0], "://")
		var escape url.EscapeError
		switch {
		case scheme != "postgres" && scheme != "postgresql":
			return errors.New("must be an address that begins with postgres:// or postgresql://")
		case errors.As(err, &escape):
			return errors.New("has a % that no two hexadecimal digits follow: write %25 for a % in the password")
		case err != nil || address.Scheme != scheme:
			return errors.New("cannot be read: check host and port, and write special characters of the password as %XX")
		}
		*to = domain.Secret(values[0])
		return nil
	}
}

// CheckDatabase returns an error unless address is that of a PostgreSQL database. The error does not quote it.
func CheckDatabase(address string) error { return isDatabase(new(domain.Secret))([]string{address}) }

// headerName matches names of headers that a proxy may set.
var headerName = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

func isHeaderName(to *string) func([]string) error {
	return func(values []string) error {
		name := http.CanonicalHeaderKey(values[0])
		if !headerName.MatchString(name) {
			return fmt.Errorf("%q is not the name of a header, such as X-Forwarded-User", values[0])
		}
		switch name {
		case "Authorization", "Cookie", "Host", "Origin", "Content-Type", "X-Forwarded-For", "X-Forwarded-Proto":
			return fmt.Errorf("%s is reserved", name)
		}
		*to = name
		return nil
	}
}

// isNetworks takes networks in CIDR notation; a bare address is a network of one.
func isNetworks(to *[]netip.Prefix) func([]string) error {
	return func(values []string) error {
		var networks []netip.Prefix
		for _, value := range values {
			network, err := netip.ParsePrefix(value)
			if address, addressErr := netip.ParseAddr(value); addressErr == nil && address.Zone() == "" {
				network, err = netip.PrefixFrom(address, address.BitLen()), nil
			}
			if err != nil {
				return fmt.Errorf("%q is not a network such as 10.0.0.0/8 or fd00::/8", value)
			}
			networks = append(networks, network.Masked())
		}
		*to = networks
		return nil
	}
}
