package console_test

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"switchyard/internal/gatewaytest"
	"switchyard/internal/signintest"
)

func TestOnlyGetIsAllowed(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	query := s.approved(t)
	for _, path := range []string{"/callback" + query, "/oauth/callback" + query, "/oauth/authorize", "/oauth/status"} {
		for _, method := range []string{http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			a := s.Do(method, path, "")
			if a.StatusCode != http.StatusMethodNotAllowed || a.Header.Get("Allow") != "GET" {
				t.Errorf("%s %s = %d, Allow: %s", method, path, a.StatusCode, a.Header.Get("Allow"))
			}
		}
	}
	if s.provider.Exchanges() != 0 {
		t.Error("a code was exchanged")
	}
	wantResult(t, s.Get("/callback"+query), http.StatusOK, "Authenticated!")
}

func TestOnlyNavigationsReachTheSignIn(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	for _, test := range []struct {
		site, mode, dest string
		ok               bool
	}{
		{"", "", "", true},
		{"none", "navigate", "document", true},
		{"same-origin", "navigate", "document", true},
		{"cross-site", "navigate", "document", true},
		{"same-site", "navigate", "document", true},
		{"cross-site", "navigate", "", true},
		{"same-origin", "cors", "", true},
		{"cross-site", "", "", false},
		{"cross-site", "no-cors", "document", false},
		{"same-site", "cors", "", false},
		{"same-origin", "cors", "empty", false},
		{"cross-site", "no-cors", "image", false},
		{"cross-site", "navigate", "iframe", false},
		{"same-origin", "navigate", "iframe", false},
		{"same-origin", "navigate", "object", false},
		{"none", "no-cors", "script", false},
	} {
		for _, path := range []string{"/oauth/authorize", "/sign-in", "/callback", "/oauth/callback"} {
			var headers []string
			for name, value := range map[string]string{"Sec-Fetch-Site": test.site, "Sec-Fetch-Mode": test.mode, "Sec-Fetch-Dest": test.dest} {
				if value != "" {
					headers = append(headers, name, value)
				}
			}
			if a := s.Get(path, headers...); (a.StatusCode != http.StatusForbidden) != test.ok {
				t.Errorf("%s with %v = %d", path, test, a.StatusCode)
			}
		}
	}
	query := s.approved(t)
	s.Get("/callback"+query, "Sec-Fetch-Dest", "image")
	wantResult(t, s.Get("/callback"+query), http.StatusOK, "Authenticated!")
	// A request is refused for its origin before its method.
	if a := s.Do(http.MethodHead, "/callback"+query, "", "Sec-Fetch-Dest", "image"); a.StatusCode != http.StatusForbidden {
		t.Errorf("HEAD by an image = %d, want 403", a.StatusCode)
	}
}

func TestWhatTheProviderSaysIsShownAsText(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	a := s.Get("/callback?error=e&error_description=" + url.QueryEscape(`<script>alert(1)</script><h1>"&'`+"\x00\x1b"))
	wantResult(t, a, http.StatusBadRequest, "Authentication Failed")
	if strings.Contains(a.Text, "<script>alert") || !strings.Contains(html.UnescapeString(a.Text), `<script>alert(1)</script><h1>"&'   (e)<`) || strings.ContainsAny(a.Text, "\x00\x1b") {
		t.Errorf("page = %s", a.Text)
	}
	for _, letter := range []string{"a", "é", "👋"} {
		a := s.Get("/callback?error=e&error_description=" + url.QueryEscape(strings.Repeat(letter, 600)))
		if !strings.Contains(a.Text, strings.Repeat(letter, 512)) || strings.Contains(a.Text, strings.Repeat(letter, 513)) {
			t.Errorf("of 600 times %q not exactly 512 are shown", letter)
		}
	}
}

func TestTheAuthorizeAnswerIsNotKept(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	one, two := s.Get("/oauth/authorize"), s.Get("/oauth/authorize")
	if one.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("Cache-Control: %s", one.Header.Get("Cache-Control"))
	}
	if one.Header.Get("Location") == two.Header.Get("Location") {
		t.Error("two sign-ins share a flow")
	}
}

func TestSecretsOfASignInAreInNoLogAndOnNoPage(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	var pages []string
	see := func(a gatewaytest.Answer) { pages = append(pages, a.Text) }
	for _, answer := range []http.HandlerFunc{
		nil,
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		http.NotFound,
		func(w http.ResponseWriter, r *http.Request) { // echoes the request
			io.Copy(w, r.Body)
		},
		func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"access_token":%q,"refresh_token":%q,"expires_in":"%s"}`, signintest.AccessToken, signintest.RefreshToken, signintest.AccessToken)
		},
	} {
		s.provider.Answer(answer)
		query := s.approved(t)
		see(s.Get("/callback" + query + "&error=e"))
		see(s.Get("/callback" + query))
		see(s.Get("/callback" + query))
		see(s.Submit("/sign-in", "callback", "http://localhost/callback"+s.approved(t)))
	}
	s.provider.Answer(nil)
	see(s.Get("/callback" + s.approved(t)))
	see(s.Get("/oauth/status"))
	if err := os.WriteFile(s.path, []byte("canary-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	see(s.Get("/callback" + s.approved(t)))
	for _, secret := range append(s.provider.Secrets(), "canary-file") {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
		for _, page := range pages {
			if strings.Contains(page, secret) {
				t.Errorf("a page holds %q: %s", secret, page)
			}
		}
	}
	if !strings.Contains(s.log.String(), "sign-in failed") {
		t.Error("failures are not logged")
	}
}

// FuzzCallback sends any query to the callback: the answer is always one of the result pages, with one heading, and
// nothing from the query becomes markup.
func FuzzCallback(f *testing.F) {
	for _, query := range []string{"", "code=a&state=b", "error=%3Cscript%3E&error_description=%00%ff", "code=%zz&state", "a;b&code=1", "error&&=&%"} {
		f.Add(query)
	}
	s := newSignInSite(f, signintest.New(f))
	titles := map[string]bool{"Authentication Failed": true, "Missing Code": true, "Missing State": true, "Invalid State": true}
	scripts := strings.Count(s.Get("/callback").Text, "<script")
	f.Fuzz(func(t *testing.T, query string) {
		s := &gatewaytest.Site{TB: t, URL: s.URL, Client: s.Client}
		unsendable := func(r rune) bool { return r <= ' ' || r == 0x7f || r == '#' }
		if _, err := url.Parse("/callback?" + query); err != nil || strings.ContainsFunc(query, unsendable) || len(query) > 100_000 {
			return
		}
		a := s.Get("/callback?" + query)
		headings := heading.FindAllStringSubmatch(a.Text, -1)
		if a.StatusCode != http.StatusBadRequest || len(headings) != 1 || !titles[headings[0][1]] {
			t.Errorf("answer = %d with headings %q", a.StatusCode, headings)
		}
		if n := strings.Count(a.Text, "<script"); n != scripts {
			t.Errorf("%d scripts on the page, want %d", n, scripts)
		}
	})
}
