package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"hash/maphash"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/keyed"
)

const (
	// buffer is the size of a connection's read and write buffers, in bytes: a request fits, and most of the default 4 KiB
	// would never be used.
	buffer = 512
	// idleFeeds is how long the idle connection of a feed stays open.
	idleFeeds = 90 * time.Second
	// idleOthers is how long idle connections other than feeds' stay open, and maxIdleOthers the most of them: enough to
	// ask a thousand projects for their pipelines every few seconds without reconnecting.
	idleOthers, maxIdleOthers = 5 * time.Second, 1100
)

// newTransport returns a transport that connects within timeout and keeps at most maxIdle idle connections, 0 for any
// number. It is used without an http.Client, which would follow redirects.
func newTransport(timeout, idle time.Duration, maxIdle int) *http.Transport {
	// A dial goes on after its request has ended, hence the time limit.
	dialer := &net.Dialer{Control: allowAddress, Timeout: timeout}
	secure := &tls.Dialer{NetDialer: dialer}
	return &http.Transport{
		Proxy: nil, // not even the environment's: project servers are nearby
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, withoutProject(address))
		},
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, timeout) // the handshake included
			defer cancel()
			return secure.DialContext(ctx, network, withoutProject(address))
		},
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        idle,
		MaxResponseHeaderBytes: maxHeader,
		ReadBufferSize:         buffer,
		WriteBufferSize:        buffer,
	}
}

// keepApart makes a transport keep the connections of each project to itself: whatever a server sends over one of them,
// late or unasked, no other project behind the same address gets it.
func keepApart(request *http.Request, p domain.Project) {
	host, port := request.URL.Hostname(), request.URL.Port()
	request.Host = request.URL.Host
	request.URL.Host = "[" + host + "." + strconv.FormatUint(maphash.Comparable(seed, p), 36) + "]"
	if port != "" {
		request.URL.Host += ":" + port
	}
}

func withoutProject(address string) string {
	host, port, _ := net.SplitHostPort(address)
	return net.JoinHostPort(host[:strings.LastIndexByte(host, '.')], port)
}

// AddressError refuses to connect to an address.
type AddressError struct{ kind string }

func (e AddressError) Error() string { return "address not allowed: " + e.kind }

// Control is a net.Dialer's Control: it gets the resolved address, so that no name, spelling or redirect bypasses it.
// check returns why nothing may connect to an address, "" if it may.
func Control(check func(netip.Addr) string) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		target, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("address %s: %w", address, err)
		}
		if kind := check(target.Addr()); kind != "" {
			return AddressError{kind}
		}
		return nil
	}
}

var allowAddress = Control(func(a netip.Addr) string { kind, _ := CheckAddress(a); return kind })

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

// CheckAddress returns the kind of an address to which no request may go, "" for any other, and the address that is
// meant: an IPv6 address may contain an IPv4 one.
func CheckAddress(a netip.Addr) (kind string, meant netip.Addr) {
	a = embedded(a.WithZone("").Unmap())
	switch {
	case a.IsUnspecified() || thisNetwork.Contains(a):
		kind = "unspecified"
	case slices.ContainsFunc(metadata, func(p netip.Prefix) bool { return p.Contains(a) }):
		kind = "cloud metadata"
	case a.IsLinkLocalUnicast():
		kind = "link-local"
	case a.IsMulticast():
		kind = "multicast"
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		kind = "broadcast"
	}
	return kind, a
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

// sizes bound the memory of all large answers together: to read more of an answer than one size, a call waits for a
// slot of the next size.
var sizes = [...]struct{ bytes, slots int }{
	{256 << 10, 0}, // no waiting: twice what a full feed has
	{1 << 20, 16},
	{maxAnswer, 3},
}

// maxLarge is how many large answers of one project are read at a time, so that a slow one leaves slots to others.
const maxLarge = 2

// slots are the semaphores of large answers: channels with a value for each slot in use.
type slots struct {
	sizes    [len(sizes)]chan struct{}
	projects *keyed.Semaphore
}

func newSlots() *slots {
	s := &slots{projects: keyed.NewSemaphore(maxLarge)}
	for i, size := range sizes {
		s.sizes[i] = make(chan struct{}, size.slots)
	}
	return s
}

// readBody reads an answer's body, until enough reports true if that is not nil, with slots for its size, for which it
// waits until ctx ends. The caller releases all when it is done with them.
func (s *slots) readBody(
	ctx context.Context, project string, response *http.Response, enough func([]byte) bool,
) (body []byte, release func(), err error) {
	var buffer bytes.Buffer
	var held []func()
	release = func() {
		for _, free := range held {
			free()
		}
	}
	var source io.Reader = response.Body
	if enough != nil {
		source = partReader{source, func() bool { return enough(buffer.Bytes()) }}
	}
	if response.ContentLength > maxAnswer {
		return nil, release, errTooLarge
	}
	if n := response.ContentLength; n > 0 && n < int64(sizes[0].bytes) {
		buffer.Grow(int(n) + bytes.MinRead)
	}
	for i, size := range sizes {
		if i == 1 {
			free, err := s.projects.Acquire(ctx, project)
			if err != nil {
				return nil, release, err
			}
			held = append(held, free)
		}
		if i > 0 {
			select {
			case s.sizes[i] <- struct{}{}:
			case <-ctx.Done():
				return nil, release, ctx.Err()
			}
			held = append(held, func() { <-s.sizes[i] })
			buffer.Grow(size.bytes - buffer.Len() + bytes.MinRead)
		}
		if _, err := buffer.ReadFrom(io.LimitReader(source, int64(size.bytes-buffer.Len()+1))); err != nil {
			return nil, release, err
		}
		if buffer.Len() <= size.bytes {
			return buffer.Bytes(), release, nil
		}
	}
	return nil, release, errTooLarge
}

// partReader ends as soon as enough reports true, which is asked before each read.
type partReader struct {
	io.Reader
	enough func() bool
}

func (r partReader) Read(p []byte) (int, error) {
	if r.enough() {
		return 0, io.EOF
	}
	return r.Reader.Read(p)
}
