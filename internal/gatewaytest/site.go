package gatewaytest

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"switchyard/handlers"
	"switchyard/internal/service"
	"switchyard/internal/waittest"
)

// AdminToken is the admin token of gateways that have one.
const AdminToken = "correct-horse"

// Site is a gateway on a loopback listener, and its clients: Send calls like a program, Do, Get and Submit like a
// browser without scripts.
type Site struct {
	testing.TB
	*Gateway
	URL    string
	Server *httptest.Server
	Client *http.Client // keeps cookies, follows no redirects
}

// NewSite is New and serves the gateway until the test ends.
func NewSite(t testing.TB, o service.Options, h handlers.Gateway) *Site {
	t.Helper()
	return New(t, o, h).Site(t)
}

// Site serves the gateway until the test ends.
func (g *Gateway) Site(t testing.TB) *Site {
	t.Helper()
	server := g.Serve(t)
	return &Site{TB: t, Gateway: g, URL: server.URL, Server: server, Client: NewClient(t)}
}

// NewClient returns a client that keeps cookies and follows no redirects.
func NewClient(t testing.TB) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{
		Jar:           jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Send sends a request without cookies; a body goes as JSON unless headers (name, value, …) say otherwise.
func (s *Site) Send(method, path, body string, headers ...string) Answer {
	s.Helper()
	if body != "" {
		headers = append([]string{"Content-Type", "application/json"}, headers...)
	}
	return s.do(http.DefaultTransport.RoundTrip, method, path, body, headers)
}

// Do sends a request with cookies; headers are name, value, …
func (s *Site) Do(method, path, body string, headers ...string) Answer {
	s.Helper()
	return s.do(s.Client.Do, method, path, body, headers)
}

// Get is Do for a page.
func (s *Site) Get(path string, headers ...string) Answer {
	s.Helper()
	return s.Do(http.MethodGet, path, "", headers...)
}

// Submit is Do for a URL-encoded form; fields are name, value, …
func (s *Site) Submit(path string, fields ...string) Answer {
	s.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return s.Do(http.MethodPost, path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

func (s *Site) do(
	send func(*http.Request) (*http.Response, error), method, path, body string, headers []string,
) Answer {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := send(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return Answer{response, string(text)}
}

// AwaitHeld waits until so many calls of this process wait for answers of people.
func (s *Site) AwaitHeld(calls int) {
	s.Helper()
	waittest.Until(s, "calls to be held", func() bool {
		stacks := make([]byte, 4<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "service.(*Questions).Wait(") == calls
	})
}

// Dial connects to the gateway, for requests that a test writes itself.
func (s *Site) Dial() (net.Conn, *bufio.Reader) {
	s.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	return conn, bufio.NewReader(conn)
}

// ReadAnswer reads an answer from a connection.
func (s *Site) ReadAnswer(from *bufio.Reader) Answer {
	s.Helper()
	response, err := http.ReadResponse(from, nil)
	if err != nil {
		s.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return Answer{response, string(text)}
}

// Ask asks a handler without a network; a body goes as JSON.
func Ask(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Answer is a response with its body read.
type Answer struct {
	*http.Response
	Text string
}

// Media returns the media type.
func (a Answer) Media() string { return a.Header.Get("Content-Type") }

// Decode decodes JSON.
func (a Answer) Decode(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Text), into); err != nil {
		t.Fatalf("%v: %s", err, a.Text)
	}
}

// WantStatus ends the test if the status is another one.
func (a Answer) WantStatus(t testing.TB, status int) Answer {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("%s %s: status %d, want %d\n%s", a.Request.Method, a.Request.URL, a.StatusCode, status, a.Text)
	}
	return a
}

// WantText ends the test unless texts occur in the page in this order.
func (a Answer) WantText(t testing.TB, texts ...string) Answer {
	t.Helper()
	rest := a.Text
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			t.Fatalf("%s: %q is not on the page, or not in its place\n%s", a.Request.URL, text, a.Text)
		}
		rest = after
	}
	return a
}

// WantNoText fails the test for each text that occurs in the page.
func (a Answer) WantNoText(t testing.TB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(a.Text, text) {
			t.Errorf("%s: %q is on the page\n%s", a.Request.URL, text, a.Text)
		}
	}
}
