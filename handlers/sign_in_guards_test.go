package handlers_test

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"switchyard/internal/signintest"
)

func TestOnlyGetIsAllowed(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	query := s.approved(t)
	for _, path := range []string{"/callback" + query, "/oauth/callback" + query, "/oauth/authorize", "/oauth/status"} {
		for _, method := range []string{http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			a := s.do(t, method, path, nil)
			if a.StatusCode != http.StatusMethodNotAllowed || a.Header.Get("Allow") != "GET" {
				t.Errorf("%s %s = %d, Allow: %s", method, path, a.StatusCode, a.Header.Get("Allow"))
			}
		}
	}
	if s.provider.Exchanges() != 0 {
		t.Error("a code was exchanged")
	}
	wantResult(t, s.get(t, "/callback"+query), http.StatusOK, "Authenticated!")
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
			if a := s.get(t, path, headers...); (a.StatusCode != http.StatusForbidden) != test.ok {
				t.Errorf("%s with %v = %d", path, test, a.StatusCode)
			}
		}
	}
	query := s.approved(t)
	s.get(t, "/callback"+query, "Sec-Fetch-Dest", "image")
	wantResult(t, s.get(t, "/callback"+query), http.StatusOK, "Authenticated!")
	// A request is refused for its origin before its method.
	if a := s.do(t, http.MethodHead, "/callback"+query, nil, "Sec-Fetch-Dest", "image"); a.StatusCode != http.StatusForbidden {
		t.Errorf("HEAD by an image = %d, want 403", a.StatusCode)
	}
}

func TestWhatTheProviderSaysIsShownAsText(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	a := s.get(t, "/callback?error=e&error_description="+url.QueryEscape(`<script>alert(1)</script><h1>"&'`+"\x00\x1b"))
	wantResult(t, a, http.StatusBadRequest, "Authentication Failed")
	if strings.Contains(a.body, "<script>alert") || !strings.Contains(html.UnescapeString(a.body), `<script>alert(1)</script><h1>"&'   (e)<`) || strings.ContainsAny(a.body, "\x00\x1b") {
		t.Errorf("page = %s", a.body)
	}
	for _, letter := range []string{"a", "é", "👋"} {
		a := s.get(t, "/callback?error=e&error_description="+url.QueryEscape(strings.Repeat(letter, 600)))
		if !strings.Contains(a.body, strings.Repeat(letter, 512)) || strings.Contains(a.body, strings.Repeat(letter, 513)) {
			t.Errorf("of 600 times %q not exactly 512 are shown", letter)
		}
	}
}

func TestTheAuthorizeAnswerIsNotKept(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	one, two := s.get(t, "/oauth/authorize"), s.get(t, "/oauth/authorize")
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
	see := func(a answer) { pages = append(pages, a.body) }
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
		see(s.get(t, "/callback"+query+"&error=e"))
		see(s.get(t, "/callback"+query))
		see(s.get(t, "/callback"+query))
		see(s.submit(t, "/sign-in", "callback", "http://localhost/callback"+s.approved(t)))
	}
	s.provider.Answer(nil)
	see(s.get(t, "/callback"+s.approved(t)))
	see(s.get(t, "/oauth/status"))
	if err := os.WriteFile(s.path, []byte("canary-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	see(s.get(t, "/callback"+s.approved(t)))
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
	scripts := strings.Count(s.get(f, "/callback").body, "<script")
	f.Fuzz(func(t *testing.T, query string) {
		unsendable := func(r rune) bool { return r <= ' ' || r == 0x7f || r == '#' }
		if _, err := url.Parse("/callback?" + query); err != nil || strings.ContainsFunc(query, unsendable) || len(query) > 100_000 {
			return
		}
		a := s.get(t, "/callback?"+query)
		headings := heading.FindAllStringSubmatch(a.body, -1)
		if a.StatusCode != http.StatusBadRequest || len(headings) != 1 || !titles[headings[0][1]] {
			t.Errorf("answer = %d with headings %q", a.StatusCode, headings)
		}
		if n := strings.Count(a.body, "<script"); n != scripts {
			t.Errorf("%d scripts on the page, want %d", n, scripts)
		}
	})
}
