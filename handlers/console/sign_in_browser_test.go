package console_test

import (
	"strings"
	"testing"

	"switchyard/internal/browsertest"
	"switchyard/internal/signintest"
)

func TestSigningInAndOutInABrowser(t *testing.T) {
	browsertest.Parallel(t)
	s := newSignInSite(t, signintest.New(t))
	tab := browsertest.Open(t)
	tab.Goto("http://localhost:" + s.port + "/events")

	tab.Find("button", "Sign in").Click()
	tab.Find("link", "Allow").Click()
	tab.WaitText("Login successful, the tab can be closed.")
	tab.Find("heading", "Authenticated!")
	tab.WaitText("Signed in, 5")
	if html := browsertest.Eval[string](tab, "document.documentElement.outerHTML"); strings.Contains(html, "canary") {
		t.Errorf("the page holds a secret: %s", html)
	}
	if !s.status(t).Authenticated {
		t.Error("not signed in")
	}

	tab.Find("link", "Back to Overview").Click()
	tab.Find("heading", "Overview")
	tab.WaitText("Signed in, 5")
	tab.Find("link", "Events").Click()
	tab.Find("heading", "Events")
	tab.Find("button", "Sign out").Click()
	tab.WaitText("Signed out.")
	tab.Find("button", "Sign in")
	if path := browsertest.Eval[string](tab, "location.pathname"); path != "/events" {
		t.Errorf("the page is %s now", path)
	}
	if s.status(t).Authenticated {
		t.Error("still signed in")
	}
}

func TestSigningInAfterLoggingIn(t *testing.T) {
	browsertest.Parallel(t)
	s := newGuardedSignInSite(t, signintest.New(t), "the admin token")
	tab := browsertest.Open(t)
	tab.Goto("http://localhost:" + s.port + "/oauth/authorize")
	tab.Find("textbox", "Token").Type("the admin token")
	tab.Find("button", "Log in").Click()
	tab.WaitText("Logged in.")
	tab.Find("button", "Sign in").Click()
	tab.Find("link", "Allow").Click()
	tab.WaitText("Signed in,")
	tab.Find("heading", "Authenticated!")
}

func TestADeniedSignInInABrowser(t *testing.T) {
	browsertest.Parallel(t)
	s := newSignInSite(t, signintest.New(t))
	tab := browsertest.Open(t)
	tab.Goto("http://localhost:" + s.port + "/oauth/authorize")
	tab.Find("link", "Deny").Click()
	tab.WaitText("The person said no")
	tab.Find("heading", "Authentication Failed")
	tab.Find("link", "Try again").Click()
	tab.Find("link", "Allow").Click()
	tab.WaitText("Login successful, the tab can be closed.")
	tab.Find("heading", "Authenticated!")
	tab.Complaints() // of the status 400
}

func TestPastingWithoutScriptsInABrowser(t *testing.T) {
	browsertest.Parallel(t)
	s := newSignInSite(t, signintest.New(t))
	tab := browsertest.Open(t)
	tab.Scripts(false)
	tab.Goto("http://localhost:" + s.port + "/events")
	tab.Find("button", "Menu").Click()
	tab.Find("link", "Sign in with a code").Click()
	tab.WaitText("Open this address in any browser")
	callback := s.provider.Approve(t, browsertest.Eval[string](tab, "document.getElementById('address').textContent"))

	tab.Find("textbox", "Callback address or code").Type("no callback")
	tab.Find("button", "Finish").Click()
	tab.WaitText("neither a callback address nor a code")
	tab.Complaints() // of the status 400

	tab.Find("textbox", "Callback address or code").Type(callback)
	tab.Find("button", "Finish").Click()
	tab.WaitText("Login successful, the tab can be closed.")
	tab.Find("heading", "Authenticated!")
	tab.Find("button", "Sign out").Click()
	tab.WaitText("Signed out.")
	tab.Find("button", "Sign in")
}

func TestPagesOfTheSignInFitASmallScreen(t *testing.T) {
	browsertest.Parallel(t)
	site := newSignInSite(t, signintest.New(t))
	bare := newSignInSite(t, nil)
	tab := browsertest.Open(t)
	for _, address := range []string{site.URL + "/sign-in", site.URL + "/callback?error=e&error_description=" + strings.Repeat("x", 512), bare.URL + "/oauth/authorize"} {
		for _, width := range []int64{360, 1280} {
			tab.Size(width, 800)
			tab.Goto(address)
			if wide := browsertest.Eval[int64](tab, "document.documentElement.scrollWidth"); wide > width {
				t.Errorf("%s is %d pixels wide on a screen of %d", address, wide, width)
			}
		}
	}
	tab.Complaints() // of the statuses 400 and 503
}
