package handlers_test

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/signintest"
)

func TestSigningInAndOut(t *testing.T) {
	for _, path := range []string{"/callback", "/oauth/callback"} {
		t.Run(path, func(t *testing.T) {
			s := newSignInSite(t, signintest.New(t))
			if got := s.get(t, "/oauth/status").body; got != `{"authenticated":false,"expired":false,"expires_at":0,"has_refresh_token":false}` {
				t.Errorf("before: %s", got)
			}
			begin := time.Now()
			a := s.get(t, path+s.approved(t))
			wantResult(t, a, http.StatusOK, "Authenticated!")
			if a.Header.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("Referrer-Policy: %s", a.Header.Get("Referrer-Policy"))
			}
			if !strings.Contains(a.body, "Login successful, the tab can be closed") || !strings.Contains(a.body, "Sign out") {
				t.Errorf("the page does not say so: %s", a.body)
			}

			status := s.status(t)
			in := status.ExpiresAt - uint64(begin.UnixMilli())
			if !status.Authenticated || status.Expired || !status.HasRefreshToken || in < 3600_000 || in > 3660_000 {
				t.Errorf("status = %+v", status)
			}
			data, err := os.ReadFile(s.path)
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			json.Unmarshal(data, &got)
			json.Unmarshal(fmt.Appendf(nil, `{"oauth":{"access_token":%q,"refresh_token":%q,"expires_at":%d,"scopes":["%s"],"subscription_type":null,"rate_limit_tier":null}}`,
				signintest.AccessToken, signintest.RefreshToken, status.ExpiresAt, strings.ReplaceAll(signintest.Scope, " ", `","`)), &want)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the file holds %v, want %v", got, want)
			}

			out := s.do(t, http.MethodPost, "/oauth/sign-out", nil)
			if out.StatusCode != http.StatusOK || out.body != `{"authenticated":false,"expired":false,"expires_at":0,"has_refresh_token":false}` {
				t.Errorf("sign-out = %d %s", out.StatusCode, out.body)
			}
			if s.status(t).Authenticated {
				t.Error("still signed in")
			}
		})
	}
}

func TestWhatIsMissingIsFoundInOrder(t *testing.T) {
	for _, configured := range []bool{true, false} {
		s := newSignInSite(t, nil)
		if configured {
			s = newSignInSite(t, signintest.New(t))
		}
		for _, test := range []struct{ query, title, message string }{
			{"?error=access_denied", "Authentication Failed", "Unknown error"},
			{"?error=access_denied&error_description=The+person+said+no", "Authentication Failed", "The person said no"},
			{"?error=&code=c&state=s", "Authentication Failed", "The provider denied the request"},
			{"?error=e&error_description=&code=c&state=s", "Authentication Failed", "The provider denied the request"},
			{"?error=%zz&code=c&state=s", "Authentication Failed", "Unknown error"},
			{"?code=c&state=s&error=a;b&error_description=50%25+or+%zz", "Authentication Failed", "50%25+or+%zz"},
			{"", "Missing Code", "No authorization code received"},
			{"?state=s", "Missing Code", "No authorization code received"},
			{"?error_description=d&state=s", "Missing Code", "No authorization code received"},
			{"?code=c", "Missing State", "No state parameter received, possible CSRF attack"},
			{"?code=", "Missing State", "No state parameter received, possible CSRF attack"},
			{"?code=c&state=s", "Invalid State", "Unknown or expired state, log in again"},
			{"?code=&state=", "Invalid State", "Unknown or expired state, log in again"},
			{"?code=%zz&state=a;b", "Invalid State", "Unknown or expired state, log in again"},
		} {
			for _, path := range []string{"/callback", "/oauth/callback"} {
				a := s.get(t, path+test.query)
				wantResult(t, a, http.StatusBadRequest, test.title)
				if !strings.Contains(a.body, test.message) {
					t.Errorf("%s does not say %q", path+test.query, test.message)
				}
				if a.Header.Get("Referrer-Policy") != "no-referrer" {
					t.Errorf("Referrer-Policy: %s", a.Header.Get("Referrer-Policy"))
				}
			}
		}
	}
}

func TestAnErrorLeavesThePendingFlow(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	query := s.approved(t)
	values, _ := url.ParseQuery(query[1:])
	s.get(t, "/callback"+query+"&error=access_denied")
	s.get(t, "/callback"+query+"&error=%zz")
	s.get(t, "/callback"+query+"&error=access;denied")
	s.get(t, "/callback?state="+values.Get("state"))
	s.get(t, "/callback?code="+values.Get("code"))
	wantResult(t, s.get(t, "/callback"+query), http.StatusOK, "Authenticated!")
}

func TestFailedExchangesHaveTheirPageAndChangeNoFile(t *testing.T) {
	for _, test := range []struct {
		name           string
		answer         http.HandlerFunc
		title, message string
	}{
		{"reset", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "Token Exchange Failed", "Failed to contact the provider"},
		{"redirect", http.RedirectHandler("http://elsewhere.invalid/", http.StatusTemporaryRedirect).ServeHTTP, "Token Exchange Failed", "The provider returned an HTTP error, try again"},
		{"status", http.NotFound, "Token Exchange Failed", "404 Not Found"},
		{"html", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<h1>Hello</h1>") }, "Token Parse Failed", "Unexpected response received"},
		{"fields", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"access_token":"canary-partial"}`) }, "Token Parse Failed", "expires_in"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSignInSite(t, signintest.New(t))
			s.provider.Answer(test.answer)
			query := s.approved(t)
			a := s.get(t, "/callback"+query)
			wantResult(t, a, http.StatusInternalServerError, test.title)
			if !strings.Contains(a.body, test.message) || strings.Contains(a.body, "canary") {
				t.Errorf("page = %s, want it to say %q", a.body, test.message)
			}
			if _, err := os.Stat(s.path); err == nil {
				t.Error("a credentials file was written")
			}
			wantResult(t, s.get(t, "/callback"+query), http.StatusBadRequest, "Invalid State")
		})
	}
}

func TestCredentialsThatCannotBeWrittenAreSaidSo(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	const foreign = "# not ours\n"
	if err := os.WriteFile(s.path, []byte(foreign), 0o600); err != nil {
		t.Fatal(err)
	}
	a := s.get(t, "/callback"+s.approved(t))
	wantResult(t, a, http.StatusInternalServerError, "Credential Write Failed")
	if !strings.Contains(a.body, "Tokens received but could not be saved") || !strings.Contains(a.body, "is not a JSON object") {
		t.Errorf("page = %s", a.body)
	}
	out := s.do(t, http.MethodPost, "/oauth/sign-out", nil)
	if out.StatusCode != http.StatusInternalServerError || !strings.Contains(out.body, "is not a JSON object") {
		t.Errorf("sign-out = %d %s", out.StatusCode, out.body)
	}
	if data, _ := os.ReadFile(s.path); string(data) != foreign {
		t.Errorf("the file became %q", data)
	}
	if s.status(t) != (domain.SignInStatus{}) {
		t.Errorf("status = %+v", s.status(t))
	}
}

func TestAnExpiredSignInIsStillOne(t *testing.T) {
	s := newSignInSite(t, nil)
	for record, want := range map[string]string{
		`{"oauth":{"access_token":"a","refresh_token":"","expires_at":1}}`:                     `{"authenticated":true,"expired":true,"expires_at":1,"has_refresh_token":false}`,
		`{"oauth":{"access_token":"a","refresh_token":"r","expires_at":18446744073709551615}}`: `{"authenticated":true,"expired":false,"expires_at":18446744073709551615,"has_refresh_token":true}`,
		`{"oauth":{"access_token":"a"}}`:                                                       `{"authenticated":false,"expired":false,"expires_at":0,"has_refresh_token":false}`,
		`{"oauth":`:                                                                            `{"authenticated":false,"expired":false,"expires_at":0,"has_refresh_token":false}`,
	} {
		if err := os.WriteFile(s.path, []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := s.get(t, "/oauth/status").body; got != want {
			t.Errorf("%s: status = %s, want %s", record, got, want)
		}
	}
}

func TestOnlyGetIsTaken(t *testing.T) {
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

func TestOfManyCallbacksAtOnceOneIsExchanged(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	query := s.approved(t)
	statuses := make(chan int, 100)
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() { statuses <- s.get(t, "/callback"+query).StatusCode })
	}
	group.Wait()
	close(statuses)
	count := map[int]int{}
	for status := range statuses {
		count[status]++
	}
	if count[http.StatusOK] != 1 || count[http.StatusBadRequest] != 99 || s.provider.Exchanges() != 1 {
		t.Errorf("statuses %v and %d exchanges, want one 200, 99 times 400, one exchange", count, s.provider.Exchanges())
	}
}

func TestARestartForgetsPendingFlows(t *testing.T) {
	provider := signintest.New(t)
	query := newSignInSite(t, provider).approved(t)
	wantResult(t, newSignInSite(t, provider).get(t, "/callback"+query), http.StatusBadRequest, "Invalid State")
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
	// What is refused for where it comes from is refused before its method is.
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

func TestWithoutAProviderSignInSaysHowToSetItUp(t *testing.T) {
	s := newSignInSite(t, nil)
	for path, status := range map[string]int{"/oauth/authorize": http.StatusTemporaryRedirect, "/sign-in": http.StatusSeeOther} {
		a := s.get(t, path).wantStatus(t, status)
		if to := a.Header.Get("Location"); to != "/sign-in/setup" {
			t.Errorf("%s leads to %s", path, to)
		}
	}
	a := s.get(t, "/sign-in/setup?code=true&state=abcde12345")
	wantResult(t, a, http.StatusOK, "Sign-in is not set up")
	a.wantNoText(t, "abcde12345")
	for _, want := range []string{
		"sign_in.authorize_url", "sign_in.token_url", "sign_in.client_id", "sign_in.product", "SWITCHYARD_OAUTH_AUTHORIZE_URL",
		"SWITCHYARD_OAUTH_TOKEN_URL", "SWITCHYARD_OAUTH_CLIENT_ID", "SWITCHYARD_OAUTH_PRODUCT", "http://localhost:" + s.port + "/callback",
		"switchyard.toml", "4 settings are missing",
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the page does not name %s", want)
		}
	}
}

func TestTheResultsTitleIsABareHeading(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	s.get(t, "/callback?error=access_denied&error_description=No").wantText(t, "<h1>Authentication Failed</h1>", "No (access_denied)")
	s.get(t, "/callback").wantText(t, "<h1>Missing Code</h1>")
}

func TestTheSignOutButtonComesBackToItsPage(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	s.get(t, "/callback"+s.approved(t))
	for next, want := range map[string]string{"/events?type=x": "/events?type=x", "https://evil.test/": "/", "//evil.test": "/", "": "/"} {
		a := s.submit(t, "/sign-out", "next", next)
		if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != want {
			t.Errorf("next %q: %d to %s, want 303 to %s", next, a.StatusCode, a.Header.Get("Location"), want)
		}
	}
	if s.status(t).Authenticated {
		t.Error("still signed in")
	}
	page := s.get(t, "/sign-in").body
	if !strings.Contains(page, ">Sign in</a>") || strings.Contains(page, "Sign out") {
		t.Error("the page does not offer to sign in")
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
		func(w http.ResponseWriter, r *http.Request) { // gives back what it got
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
