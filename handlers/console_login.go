package handlers

import (
	"net/http"
	"strings"

	"switchyard/internal/domain"
	"switchyard/views"
)

// login is the page that asks for the admin token. Who needs none, or has a session, is sent on.
func (c *console) login(w http.ResponseWriter, r *http.Request) error {
	next := r.URL.Query().Get("next")
	switch proofOf(r) {
	case nothingAsked:
		http.Redirect(w, r, views.OverviewURL, http.StatusSeeOther)
	case sessionGiven:
		http.Redirect(w, r, afterLogin(next), http.StatusSeeOther)
	default:
		return c.askForToken(w, r, http.StatusOK, views.LoginProps{Next: next})
	}
	return nil
}

// logIn takes the admin token and begins a session.
func (c *console) logIn(w http.ResponseWriter, r *http.Request) error {
	if proofOf(r) == nothingAsked {
		http.Redirect(w, r, views.OverviewURL, http.StatusSeeOther)
		return nil
	}
	form, err := decodeForm(w, r)
	if err != nil {
		return err
	}
	next := form.Get("next")
	switch c.access.judge(r, form.Get("token")) {
	case tokenWrong:
		return c.askForToken(w, r, http.StatusUnauthorized, views.LoginProps{Next: next, Problem: "This is not the admin token."})
	case tooManyWrong:
		var problem error
		c.access.refuseForNow(w, r, func(w http.ResponseWriter, status int, message string) {
			problem = c.askForToken(w, r, status, views.LoginProps{Next: next, Problem: "Too many wrong tokens came from this address. Try again in a minute."})
		})
		return problem
	}
	if err := c.access.sessions.begin(w, r); err != nil {
		return domain.WrapError(domain.Internal, err, "the session could not be made")
	}
	c.log.InfoContext(r.Context(), "logged in", "from", callerOf(r), "id", requestID(r.Context()))
	w.Header().Set("Cache-Control", "no-store")
	if next = afterLogin(next); next == views.SignInURL {
		// The content security policy keeps forms on this site, redirects included: the browser would stay on the login.
		return c.notices.redirect(w, r, views.OverviewURL, views.Notice{Text: "Logged in. Choose Sign in again to go to the identity provider."})
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

// logOut ends the session.
func (c *console) logOut(w http.ResponseWriter, r *http.Request) error {
	c.access.sessions.end(w)
	http.Redirect(w, r, views.LoginURL, http.StatusSeeOther)
	return nil
}

func (c *console) askForToken(w http.ResponseWriter, r *http.Request, status int, p views.LoginProps) error {
	w.Header().Set("Cache-Control", "no-store")
	return c.render(w, r, view{
		frame:  views.Frame{Title: "Log in", Bare: true},
		page:   views.Login(p),
		status: status,
	})
}

// logInFirst answers a form that was sent without a session: what it held is lost, but not the way back.
func (c *console) logInFirst(w http.ResponseWriter, r *http.Request) error {
	return c.askForToken(w, r, http.StatusUnauthorized, views.LoginProps{})
}

// afterLogin is where a login leads: next, if that is on this site and not the login again.
func afterLogin(next string) string {
	next = localPath(next)
	if path, _, _ := strings.Cut(next, "?"); path == views.LoginURL {
		return views.OverviewURL
	}
	return next
}
