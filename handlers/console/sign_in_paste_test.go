package console_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"switchyard/internal/gatewaytest"
	"switchyard/internal/signintest"
)

// addressOn returns the provider's address on the page for signing in by hand.
func addressOn(t *testing.T, a gatewaytest.Answer) string {
	t.Helper()
	found := regexp.MustCompile(`<code id="address"[^>]*>([^<]*)<`).FindStringSubmatch(a.Text)
	if found == nil {
		t.Fatalf("no address on the page: %s", a.Text)
	}
	return html.UnescapeString(found[1])
}

func TestSigningInByHand(t *testing.T) {
	for name, paste := range map[string]func(callback string) string{
		"the whole address": func(callback string) string { return callback },
		"with space around": func(callback string) string { return "\n " + callback + " \r\n" },
		"its query":         func(callback string) string { _, query, _ := strings.Cut(callback, "?"); return query },
		"another host": func(callback string) string {
			return strings.Replace(callback, "http://localhost", "https://box.example", 1)
		},
		"code#state": func(callback string) string {
			u, _ := url.Parse(callback)
			return u.Query().Get("code") + "#" + u.Query().Get("state")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSignInSite(t, signintest.New(t))
			page := s.Get("/sign-in")
			wantResult(t, page, http.StatusOK, "Sign in with a code")
			callback := paste(s.provider.Approve(t, addressOn(t, page)))
			a := s.Submit("/sign-in", "callback", callback)
			wantResult(t, a, http.StatusOK, "Authenticated!")
			if !s.status(t).Authenticated {
				t.Error("not signed in")
			}
			wantResult(t, s.Submit("/sign-in", "callback", callback), http.StatusBadRequest, "Invalid State")
		})
	}
}

func TestWhatIsNoCallbackIsRefusedAtTheField(t *testing.T) {
	s := newSignInSite(t, signintest.New(t))
	for _, text := range []string{"", "   ", "hello", "http://localhost:3000/callback", "http://localhost:3000/callback?code=c", "#", "code#", "#state", "two words#state", "https://a.test/x#frag"} {
		a := s.Submit("/sign-in", "callback", text)
		wantResult(t, a, http.StatusBadRequest, "Sign in with a code")
		if !strings.Contains(a.Text, `aria-invalid="true"`) || !strings.Contains(a.Text, "neither a callback address nor a code") {
			t.Errorf("%q: no message at the field", text)
		}
		addressOn(t, a)
	}
	wantResult(t, s.Submit("/sign-in", "callback", "http://localhost/callback?error=access_denied"), http.StatusBadRequest, "Authentication Failed")
	if a := s.Do(http.MethodPost, "/sign-in", "", "Sec-Fetch-Site", "cross-site"); a.StatusCode != http.StatusForbidden {
		t.Errorf("a form of another site = %d, want 403", a.StatusCode)
	}
}
