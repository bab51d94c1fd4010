package console_test

import (
	"encoding/json"
	"fmt"
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
			if got := s.Get("/oauth/status").Text; got != `{"authenticated":false,"expired":false,"expires_at":0,"has_refresh_token":false}` {
				t.Errorf("before: %s", got)
			}
			begin := time.Now()
			a := s.Get(path + s.approved(t))
			wantResult(t, a, http.StatusOK, "Authenticated!")
			if a.Header.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("Referrer-Policy: %s", a.Header.Get("Referrer-Policy"))
			}
			if !strings.Contains(a.Text, "Login successful, the tab can be closed") || !strings.Contains(a.Text, "Sign out") {
				t.Errorf("the page does not say so: %s", a.Text)
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

			out := s.Do(http.MethodPost, "/oauth/sign-out", "")
			if out.StatusCode != http.StatusOK || out.Text != `{"authenticated":false,"expired":false,"expires_at":0,"has_refresh_token":false}` {
				t.Errorf("sign-out = %d %s", out.StatusCode, out.Text)
			}
			if s.status(t).Authenticated {
				t.Error("still signed in")
			}
		})
	}
}

func TestWhatIsMissingIsReportedInOrder(t *testing.T) {
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
				a := s.Get(path + test.query)
				wantResult(t, a, http.StatusBadRequest, test.title)
				if !strings.Contains(a.Text, test.message) {
					t.Errorf("%s does not say %q", path+test.query, test.message)
				}
				if a.Header.Get("Referrer-Policy") != "no-referrer" {
					t.Errorf("Referrer-Policy: %s", a.Header.Get("Referrer-Policy"))
				}
			}
		}
	}
}

func TestAnErrorKeepsThePendingFlow(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	query := s.approved(t)
	values, _ := url.ParseQuery(query[1:])
	s.Get("/callback" + query + "&error=access_denied")
	s.Get("/callback" + query + "&error=%zz")
	s.Get("/callback" + query + "&error=access;denied")
	s.Get("/callback?state=" + values.Get("state"))
	s.Get("/callback?code=" + values.Get("code"))
	wantResult(t, s.Get("/callback"+query), http.StatusOK, "Authenticated!")
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
			a := s.Get("/callback" + query)
			wantResult(t, a, http.StatusInternalServerError, test.title)
			if !strings.Contains(a.Text, test.message) || strings.Contains(a.Text, "canary") {
				t.Errorf("page = %s, want it to say %q", a.Text, test.message)
			}
			if _, err := os.Stat(s.path); err == nil {
				t.Error("a credentials file was written")
			}
			wantResult(t, s.Get("/callback"+query), http.StatusBadRequest, "Invalid State")
		})
	}
}

func TestCredentialsThatCannotBeWrittenAreReported(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	const foreign = "# not ours\n"
	if err := os.WriteFile(s.path, []byte(foreign), 0o600); err != nil {
		t.Fatal(err)
	}
	a := s.Get("/callback" + s.approved(t))
	wantResult(t, a, http.StatusInternalServerError, "Credential Write Failed")
	if !strings.Contains(a.Text, "Tokens received but could not be saved") || !strings.Contains(a.Text, "is not a JSON object") {
		t.Errorf("page = %s", a.Text)
	}
	out := s.Do(http.MethodPost, "/oauth/sign-out", "")
	if out.StatusCode != http.StatusInternalServerError || !strings.Contains(out.Text, "is not a JSON object") {
		t.Errorf("sign-out = %d %s", out.StatusCode, out.Text)
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
		if got := s.Get("/oauth/status").Text; got != want {
			t.Errorf("%s: status = %s, want %s", record, got, want)
		}
	}
}

func TestOneOfManyConcurrentCallbacksIsExchanged(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	query := s.approved(t)
	statuses := make(chan int, 100)
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() { statuses <- s.Get("/callback" + query).StatusCode })
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
	wantResult(t, newSignInSite(t, provider).Get("/callback"+query), http.StatusBadRequest, "Invalid State")
}

func TestWithoutAProviderSignInSaysHowToSetItUp(t *testing.T) {
	s := newSignInSite(t, nil)
	for path, status := range map[string]int{"/oauth/authorize": http.StatusTemporaryRedirect, "/sign-in": http.StatusSeeOther} {
		a := s.Get(path).WantStatus(t, status)
		if to := a.Header.Get("Location"); to != "/sign-in/setup" {
			t.Errorf("%s leads to %s", path, to)
		}
	}
	a := s.Get("/sign-in/setup?code=true&state=abcde12345")
	wantResult(t, a, http.StatusOK, "Sign-in is not set up")
	a.WantNoText(t, "abcde12345")
	for path, want := range map[string]string{"/sign-in/setup": "same-origin", "/sign-in/setup?code=true": "no-referrer"} {
		if got := s.Get(path).Header.Get("Referrer-Policy"); got != want {
			t.Errorf("%s: Referrer-Policy: %s, want %s", path, got, want)
		}
	}
	for _, want := range []string{
		"sign_in.authorize_url", "sign_in.token_url", "sign_in.client_id", "sign_in.product", "SWITCHYARD_OAUTH_AUTHORIZE_URL",
		"SWITCHYARD_OAUTH_TOKEN_URL", "SWITCHYARD_OAUTH_CLIENT_ID", "SWITCHYARD_OAUTH_PRODUCT", "http://localhost:" + s.port + "/callback",
		"switchyard.toml", "4 settings are missing",
	} {
		if !strings.Contains(a.Text, want) {
			t.Errorf("the page does not name %s", want)
		}
	}
}

func TestTheResultsTitleIsABareHeading(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	s.Get("/callback?error=access_denied&error_description=No").WantText(t, "<h1>Authentication Failed</h1>", "No (access_denied)")
	s.Get("/callback").WantText(t, "<h1>Missing Code</h1>")
}

func TestTheSignOutButtonComesBackToItsPage(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	s.Get("/callback" + s.approved(t))
	for next, want := range map[string]string{"/events?type=x": "/events?type=x", "https://evil.test/": "/", "//evil.test": "/", "": "/"} {
		a := s.Submit("/sign-out", "next", next)
		if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != want {
			t.Errorf("next %q: %d to %s, want 303 to %s", next, a.StatusCode, a.Header.Get("Location"), want)
		}
	}
	if s.status(t).Authenticated {
		t.Error("still signed in")
	}
	page := s.Get("/sign-in").Text
	if !strings.Contains(page, ">Sign in</a>") || strings.Contains(page, "Sign out") {
		t.Error("the page does not offer to sign in")
	}
}
