package console

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"switchyard/internal/domain"
	"switchyard/internal/signin"
	"switchyard/views"
)

func (c *Console) Authorize(w http.ResponseWriter, r *http.Request) error {
	redirectURI, err := redirectURI(r)
	if err != nil {
		return err
	}
	address, err := c.service.SignIn.Start(r.Context(), redirectURI)
	if domain.CodeOf(err) == domain.NotFound {
		address, err = views.SignInSetUpURL, nil
	}
	if err != nil {
		return err
	}
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusTemporaryRedirect)
	return nil
}

// redirectURI returns the address to which the provider redirects the browser: on the port on which this request came
// in.
func redirectURI(r *http.Request) (string, error) {
	address, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if address == nil {
		return "", fmt.Errorf("the request came without a port")
	}
	_, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return "", err
	}
	return "http://localhost:" + port + "/callback", nil
}

// SignInSetUp is the page that says which settings are missing, where a sign-in without configuration ends up.
func (c *Console) SignInSetUp(w http.ResponseWriter, r *http.Request) error {
	redirectURI, err := redirectURI(r)
	if err != nil {
		return err
	}
	setup := c.service.SignIn.Setup()
	p := views.SignInSetUpProps{Missing: setup.Missing, ConfigFile: setup.ConfigFile, RedirectURI: redirectURI}
	return c.render(w, r, view{frame: views.Frame{Title: "Set up sign-in"}, page: views.SignInSetUp(p), once: true})
}

// Callback is the address to which the provider redirects the browser.
func (c *Console) Callback(w http.ResponseWriter, r *http.Request) error {
	return c.signInResult(w, r, signin.ParseCallback(r.URL.RawQuery))
}

// SignInByHand is the page for signing in from a browser that cannot reach the callback.
func (c *Console) SignInByHand(w http.ResponseWriter, r *http.Request) error {
	return c.showSignInByHand(w, r, "")
}

// PasteSignIn takes the address at which the browser ended.
func (c *Console) PasteSignIn(w http.ResponseWriter, r *http.Request, form url.Values) error {
	callback, err := signin.ParsePastedCallback(form.Get("callback"))
	if err != nil {
		return c.showSignInByHand(w, r, domain.MessageOf(err))
	}
	return c.signInResult(w, r, callback)
}

// showSignInByHand starts a new flow each time; what was pasted before is not shown again.
func (c *Console) showSignInByHand(w http.ResponseWriter, r *http.Request, problem string) error {
	if !c.service.SignIn.Configured() {
		return seeOther(w, r, views.SignInSetUpURL)
	}
	v := view{frame: views.Frame{Title: "Sign in with a code"}, once: true}
	props := views.SignInByHandProps{Problem: problem, SignIn: c.service.SignIn.Status(), Now: now()}
	if problem != "" {
		v.status = http.StatusBadRequest
	}
	var err error
	if props.RedirectURI, err = redirectURI(r); err != nil {
		return err
	}
	if props.Address, err = c.service.SignIn.Start(r.Context(), props.RedirectURI); err != nil {
		return err
	}
	v.page = views.SignInByHand(props)
	return c.render(w, r, v)
}

func (c *Console) SignOutForm(w http.ResponseWriter, r *http.Request, form url.Values) error {
	notice := views.Notice{Text: "Signed out."}
	if _, err := c.service.SignIn.SignOut(r.Context()); err != nil {
		c.LogCause(r, err)
		notice = views.Notice{Text: domain.MessageOf(err), Signal: views.SignalStop}
	}
	return c.notices.redirect(w, r, localPath(form.Get("next")), notice)
}

func (c *Console) signInResult(w http.ResponseWriter, r *http.Request, callback domain.SignInCallback) error {
	result := c.service.SignIn.Finish(r.Context(), callback)
	page := signInPages[result.Outcome]
	page.props.Detail = foreignText(result.Detail)
	page.props.Done = result.Outcome == domain.SignInDone
	return c.render(w, r, view{
		frame:  views.Frame{Title: page.props.Title},
		page:   views.SignInResult(page.props),
		status: page.status,
	})
}

var signInPages = map[domain.SignInOutcome]struct {
	status int
	props  views.SignInResultProps
}{
	domain.SignInDenied: {http.StatusBadRequest, views.SignInResultProps{
		Title: "Authentication Failed", Message: "The provider denied the request.",
		Next: "Nothing has changed here.",
	}},
	domain.SignInNoCode: {http.StatusBadRequest, views.SignInResultProps{
		Title: "Missing Code", Message: "No authorization code received.",
		Next: "The address has no code in it. Sign in again, or copy the complete address.",
	}},
	domain.SignInNoState: {http.StatusBadRequest, views.SignInResultProps{
		Title: "Missing State", Message: "No state parameter received, possible CSRF attack.",
		Next: "If you did not just sign in here, close this page. Otherwise sign in again.",
	}},
	domain.SignInUnknownState: {http.StatusBadRequest, views.SignInResultProps{
		Title: "Invalid State", Message: "Unknown or expired state, log in again.",
		Next: "Each sign-in works once, and restarting the gateway cancels those in progress.",
	}},
	domain.SignInNoDatabase: {http.StatusServiceUnavailable, views.SignInResultProps{
		Title: "Database Unreachable", Message: "The sign-in could not be looked up.",
		Next: "Reload this page when the database is back.",
	}},
	domain.SignInUnreachable: {http.StatusInternalServerError, views.SignInResultProps{
		Title: "Token Exchange Failed", Message: "Failed to contact the provider.",
		Next: "Check that this machine reaches the token address, then try again.",
	}},
	domain.SignInRefused: {http.StatusInternalServerError, views.SignInResultProps{
		Title: "Token Exchange Failed", Message: "The provider returned an HTTP error, try again.",
		Next: "If this keeps happening, check the client and the token address in the settings.",
	}},
	domain.SignInUnreadable: {http.StatusInternalServerError, views.SignInResultProps{
		Title: "Token Parse Failed", Message: "Unexpected response received from the provider.",
		Next: "Check the token address in the settings, then try again.",
	}},
	domain.SignInNotSaved: {http.StatusInternalServerError, views.SignInResultProps{
		Title: "Credential Write Failed", Message: "Tokens received but could not be saved.",
		Next: "Nothing was overwritten. Fix the problem, then try again.",
	}},
	domain.SignInDone: {http.StatusOK, views.SignInResultProps{
		Title: "Authenticated!", Message: "Login successful, the tab can be closed.",
		Next: "The console shows how long the sign-in is valid.",
	}},
}

// maxForeignText is how much of another server's error text is shown, in characters.
const maxForeignText = 512

// foreignText prepares text from outside to be shown: at most maxForeignText characters, none of them control
// characters.
func foreignText(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, domain.Truncate(strings.ToValidUTF8(text, "\uFFFD"), maxForeignText))
}
