//go:build stress

package stress

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"
)

// fault is what a proxy does to responses.
type fault string

const (
	none     fault = "none"
	refuse   fault = "refuse"   // nobody listens
	hang     fault = "hang"     // never a response
	reset    fault = "reset"    // the connection is reset in the middle of the response
	trickle  fault = "trickle"  // one byte a second
	truncate fault = "truncate" // half of the response
	bomb     fault = "bomb"     // 256 MiB compressed to 250 kB
)

var faults = []fault{refuse, hang, reset, trickle, truncate, bomb}

// proxy stands between the gateway and a project server.
type proxy struct {
	t       *testing.T
	address string
	target  string
	client  http.Transport
	clock   *clock // nil if the server's clock is right

	mu      sync.Mutex
	fault   fault
	changed chan struct{} // closed when fault is outdated
	server  *http.Server  // nil while it refuses
}

func newProxy(t *testing.T, address, target string) *proxy {
	p := &proxy{t: t, address: address, target: target, fault: none, changed: make(chan struct{})}
	p.listen()
	t.Cleanup(func() {
		p.set(refuse)
		p.client.CloseIdleConnections()
	})
	return p
}

func (p *proxy) listen() {
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		p.t.Error(err)
		return
	}
	p.server = &http.Server{Handler: p, ErrorLog: log.New(io.Discard, "", 0)}
	go func(s *http.Server) { _ = s.Serve(listener) }(p.server)
}

// set changes the fault, for requests in progress as well.
func (p *proxy) set(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
	close(p.changed)
	p.changed = make(chan struct{})
	switch {
	case f == refuse && p.server != nil:
		p.server.Close()
		p.server = nil
	case f != refuse && p.server == nil:
		p.listen()
	}
}

func (p *proxy) state() (fault, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault, p.changed
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for {
		f, changed := p.state()
		switch f {
		case hang:
			<-r.Context().Done()
			return
		case bomb:
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Feed-Instance", "bomb")
			_, _ = w.Write(bombBody())
			return
		}
		header, body, err := p.ask(r, changed)
		if now, _ := p.state(); now != f { // the fault hits the response in progress
			continue
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		for name, values := range header {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		p.answer(w, r, f, body)
		return
	}
}

// ask forwards a request to the project server; it gives up when the fault changes.
func (p *proxy) ask(r *http.Request, changed <-chan struct{}) (http.Header, []byte, error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case <-changed:
			cancel()
		case <-ctx.Done():
		}
	}()
	if p.clock == nil || r.URL.Path != "/api/events" {
		return p.get(ctx, r.URL.Path, r.URL.Query())
	}
	header, _, err := p.get(ctx, r.URL.Path, nothing)
	if err != nil {
		return nil, nil, err
	}
	instance := header.Get("Feed-Instance")
	offset := p.clock.offset(instance)
	header, body, err := p.get(ctx, r.URL.Path, since(r.URL.Query(), offset))
	if err == nil && header.Get("Feed-Instance") != instance {
		err = errors.New("another life of the server answers")
	}
	if err != nil {
		return nil, nil, err
	}
	body, err = shift(body, offset)
	return header, body, err
}

func (p *proxy) get(ctx context.Context, path string, query url.Values) (http.Header, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.target+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, nil, err
	}
	response, err := p.client.RoundTrip(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.Header, body, err
}

// answer writes a response with the fault.
func (p *proxy) answer(w http.ResponseWriter, r *http.Request, f fault, body []byte) {
	flush := http.NewResponseController(w).Flush
	switch f {
	case none:
		_, _ = w.Write(body)
	case truncate:
		_, _ = w.Write(body[:len(body)/2])
		_ = flush()
		panic(http.ErrAbortHandler)
	case trickle:
		every := time.NewTicker(time.Second)
		defer every.Stop()
		for i := range body {
			_, _ = w.Write(body[i : i+1])
			if flush() != nil {
				return
			}
			select {
			case <-every.C:
			case <-r.Context().Done():
				return
			}
		}
	default: // reset, and refuse while the server closes
		_, _ = w.Write(body[:len(body)/2])
		_ = flush()
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		}
	}
}

// bombBody is the beginning of an endless feed, compressed.
var bombBody = sync.OnceValue(func() []byte {
	var body bytes.Buffer
	w, _ := gzip.NewWriterLevel(&body, gzip.BestSpeed) // the level is valid
	_, _ = io.WriteString(w, "[")
	for range 256 {
		_, _ = w.Write(bytes.Repeat([]byte(" "), 1<<20))
	}
	_ = w.Close()
	return body.Bytes()
})
