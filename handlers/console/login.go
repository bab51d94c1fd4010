package console

import (
	"net/http"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

// LoginPage is the page that asks for a token. A reader who needs none, or has a session, is redirected.
func (c *Console) LoginPage(w http.ResponseWriter, r *http.Request) error {
	next := r.URL.Query().Get("next")
	switch web.InfoOf(r.Context()).Auth {
	case web.AuthNotRequired:
		return seeOther(w, r, views.OverviewURL)
	case web.AuthSession, web.AuthProxy:
		return seeOther(w, r, afterLogin(next))
	}
	return c.askForToken(w, r, http.StatusOK, views.LoginProps{Next: next})
}

func (c *Console) LogIn(w http.ResponseWriter, r *http.Request) error {
	if web.InfoOf(r.Context()).Auth == web.AuthNotRequired {
		return seeOther(w, r, views.OverviewURL)
	}
	form, err := decodeFormUpTo(w, r, web.SmallBody)
	if err != nil {
		return err
	}
	next := form.Get("next")
	err = c.sessions.LogIn(w, r, domain.Secret(strings.TrimSpace(form.Get("token"))))
	if problem := tokenProblems[domain.CodeOf(err)]; problem != "" {
		return c.askForToken(w, r, web.StatusOf(err), views.LoginProps{Next: next, Problem: problem})
	}
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	if next = afterLogin(next); next == views.SignInURL {
		// The content security policy keeps forms on this site, redirects included: the browser would stay on the login page.
		return c.notices.redirect(w, r, views.OverviewURL,
			views.Notice{Text: "Logged in. Choose Sign in again to go to the identity provider."})
	}
	return seeOther(w, r, next)
}

var tokenProblems = map[domain.Code]string{
	domain.Unauthorized: "This is neither the admin token nor another valid one.",
	domain.RateLimited:  "Too many wrong tokens from this address. Try again in a minute.",
}

func (c *Console) LogOut(w http.ResponseWriter, r *http.Request) error {
	if err := c.sessions.LogOut(w, r); err != nil {
		return err
	}
	return seeOther(w, r, views.LoginURL)
}

func (c *Console) askForToken(w http.ResponseWriter, r *http.Request, status int, p views.LoginProps) error {
	w.Header().Set("Cache-Control", "no-store")
	if p.Link, p.Provider = c.sessions.LoginLink(r); p.Link != "" {
		p.Link = views.LoginOf(p.Link, p.Next)
	}
	return c.render(w, r, view{frame: views.Frame{Title: "Log in", Bare: true}, page: views.Login(p), status: status})
}

// LogInFirst answers a caller without a session: a browser that opens a page is redirected to the login, and one that
// sent a form gets the login page as its answer. What the form held is lost, but not the way back.
func (c *Console) LogInFirst(w http.ResponseWriter, r *http.Request) error {
	if wantsPart(r) {
		w.Header().Set("HX-Refresh", "true") // reloads the page, which then redirects to the login
		return domain.Errorf(domain.Unauthorized, "a session is required")
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return c.askForToken(w, r, http.StatusUnauthorized, views.LoginProps{})
	}
	w.Header().Set("Cache-Control", "no-store")
	next := r.URL.RequestURI()
	if next == views.OverviewURL {
		next = ""
	}
	w.Header().Set("Location", views.LoginOf(views.LoginURL, next))
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// afterLogin returns where a login leads: to next, if that is on this site and not the login itself.
func afterLogin(next string) string {
	next = localPath(next)
	if path, _, _ := strings.Cut(next, "?"); path == views.LoginURL || strings.HasPrefix(path, views.LoginURL+"/") {
		return views.OverviewURL
	}
	return next
}

func (c *Console) StartLogin(w http.ResponseWriter, r *http.Request) error {
	if address, _ := c.sessions.LoginLink(r); address == "" {
		return seeOther(w, r, views.LoginURL)
	}
	next := afterLogin(r.URL.Query().Get("next"))
	address, err := c.sessions.StartLogin(w, r, next)
	if err != nil {
		return c.loginFailed(w, r, next, err)
	}
	return seeOther(w, r, address)
}

// FinishLogin is the address to which the provider redirects the browser.
func (c *Console) FinishLogin(w http.ResponseWriter, r *http.Request) error {
	if address, _ := c.sessions.LoginLink(r); address == "" {
		return seeOther(w, r, views.LoginURL)
	}
	next, err := c.sessions.FinishLogin(w, r)
	if err != nil {
		return c.loginFailed(w, r, next, err)
	}
	return seeOther(w, r, afterLogin(next))
}

func (c *Console) loginFailed(w http.ResponseWriter, r *http.Request, next string, err error) error {
	if domain.CodeOf(err) == domain.Internal || web.IsClientGone(r, err) {
		return err
	}
	return c.askForToken(w, r, web.StatusOf(err), views.LoginProps{Next: next, Refusal: domain.MessageOf(err)})
}
