package config

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/mail"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"switchyard/internal/domain"
)

// kind is how a setting is written.
type kind int

const (
	textKind   kind = iota
	zeroKind        // a text, or the number 0
	numberKind      // a number
	boolKind        // true or false; its flag needs no value
	commaList       // an array in the file, separated by commas in its variable
	spaceList       // an array in the file, separated by spaces in its variable
)

func (k kind) list() bool { return k == commaList || k == spaceList }

// setter checks the values of a setting and stores them.
type setter struct {
	kind kind
	set  func(values []string) error
}

func one[T any](to *T, parse func(string) (T, error)) setter {
	return setter{textKind, func(values []string) error {
		value, err := parse(values[0])
		if err == nil {
			*to = value
		}
		return err
	}}
}

func on(to *bool) setter { return setter{boolKind, one(to, parseBool).set} }

func each[T any](to *[]T, parse func(string) (T, error)) setter {
	return setter{commaList, func(values []string) error {
		var list []T
		for _, text := range values {
			value, err := parse(text)
			if err != nil {
				return err
			}
			list = append(list, value)
		}
		*to = list
		return nil
	}}
}

var errEmpty = errors.New("must not be empty")

func parseText(text string) (string, error) {
	switch {
	case text == "":
		return "", errEmpty
	case strings.ContainsFunc(text, unicode.IsControl):
		return "", errors.New("must not contain control characters")
	}
	return text, nil
}

// parseWord takes a text without spaces: it becomes part of a scope, and scopes are separated by spaces.
func parseWord(text string) (string, error) {
	if strings.ContainsFunc(text, unicode.IsSpace) {
		return "", errors.New("must not contain spaces")
	}
	return parseText(text)
}

func parseScope(text string) (string, error) {
	scope, err := parseWord(text)
	if err != nil {
		err = fmt.Errorf("%q: %w", text, err)
	}
	return scope, err
}

// scopes stores a list of scopes that is not empty.
func scopes(to *[]string) setter {
	return setter{spaceList, func(values []string) error {
		if len(values) == 0 {
			return errEmpty
		}
		return each(to, parseScope).set(values)
	}}
}

func parseBool(text string) (bool, error) {
	on, err := strconv.ParseBool(text)
	if err != nil {
		err = fmt.Errorf("%q is neither true nor false", text)
	}
	return on, err
}

func parsePath(text string) (string, error) {
	switch {
	case text == "":
		return "", errEmpty
	case strings.ContainsRune(text, 0):
		return "", errors.New("must not contain NUL")
	}
	return filepath.Abs(text)
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration such as 500ms, 2s, 1m30s or 48h", text)
	case d < time.Millisecond:
		return 0, errors.New("must be at least 1ms")
	}
	return d, nil
}

// orZero stores a duration, or 0 with or without a unit.
func orZero(to *time.Duration) setter {
	return setter{zeroKind, one(to, func(text string) (time.Duration, error) {
		if d, err := time.ParseDuration(text); err == nil && d == 0 {
			return 0, nil
		}
		return parseDuration(text)
	}).set}
}

func port(to *int) setter {
	return setter{numberKind, one(to, func(text string) (int, error) {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return 0, errors.New("must be a port, a number from 1 to 65535")
		}
		return int(port), nil
	}).set}
}

func parseMailbox(text string) (string, error) {
	if _, err := mail.ParseAddress(text); err != nil {
		return "", fmt.Errorf("%q is not a mail address, such as switchyard@example.org", text)
	}
	return parseText(text)
}

func oneOf(words ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", errors.New("must be one of " + strings.Join(words, ", "))
		}
		return text, nil
	}
}

func parseAddress(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("%q is not HOST:PORT, such as localhost:3000 or [::1]:3000", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", errors.New("the port must be a number from 0 to 65535")
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && !isHostName(host) {
		return "", fmt.Errorf("%q is not a host name or IP address", host)
	}
	return net.JoinHostPort(strings.ToLower(host), port), nil
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

func parseHost(text string) (string, error) {
	if _, err := netip.ParseAddr(text); err != nil && (!isHostName(text) || strings.Contains(text, "..")) {
		return "", fmt.Errorf("%q is not a host name (without scheme, port and wildcards; other scripts as xn--…)", text)
	}
	return text, nil
}

func parseURL(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "", errors.New("must be an absolute http or https address")
	case u.User != nil || strings.Contains(text, "#"):
		return "", errors.New("must not contain a user name, a password or a fragment")
	}
	return text, nil
}

// parsePlainURL takes an address without a query, as paths will be appended to it.
func parsePlainURL(text string) (string, error) {
	if strings.Contains(text, "?") {
		return "", errors.New("must not contain a query")
	}
	return parseURL(text)
}

// parseOrigin takes an address without a path: below one, the console's pages would not find each other.
func parseOrigin(text string) (string, error) {
	text, err := parsePlainURL(text)
	if err != nil {
		return "", err
	}
	if u, _ := url.Parse(text); strings.Trim(u.Path, "/") != "" { // parsePlainURL has parsed it
		return "", errors.New("must not contain a path: the gateway needs a host name or a port of its own")
	}
	return text, nil
}

// ParseDatabase takes the address of a PostgreSQL database. Its errors do not quote the address, which may hold a
// password.
func ParseDatabase(text string) (domain.Secret, error) {
	address, err := url.Parse(text)
	scheme, _, _ := strings.Cut(text, "://")
	var escape url.EscapeError
	switch {
	case scheme != "postgres" && scheme != "postgresql":
		return "", errors.New("must be an address that begins with postgres:// or postgresql://")
	case errors.As(err, &escape):
		return "", errors.New("has a % that no two hexadecimal digits follow: write %25 for a % in the password")
	case err != nil || address.Scheme != scheme:
		return "", errors.New("cannot be read: check host and port, and write special characters of the password as %XX")
	}
	return domain.Secret(text), nil
}

// headerName matches names of headers that a proxy may set.
var headerName = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

func parseHeaderName(text string) (string, error) {
	name := http.CanonicalHeaderKey(text)
	if !headerName.MatchString(name) {
		return "", fmt.Errorf("%q is not the name of a header, such as X-Forwarded-User", text)
	}
	switch name {
	case "Authorization", "Cookie", "Host", "Origin", "Content-Type", "X-Forwarded-For", "X-Forwarded-Proto":
		return "", fmt.Errorf("%s is reserved", name)
	}
	return name, nil
}

// parseNetwork takes a network in CIDR notation; a bare address is a network of one.
func parseNetwork(text string) (netip.Prefix, error) {
	network, err := netip.ParsePrefix(text)
	if address, addressErr := netip.ParseAddr(text); addressErr == nil && address.Zone() == "" {
		network, err = netip.PrefixFrom(address, address.BitLen()), nil
	}
	if err != nil {
		return network, fmt.Errorf("%q is not a network such as 10.0.0.0/8 or fd00::/8", text)
	}
	return network.Masked(), nil
}
