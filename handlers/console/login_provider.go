package console

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

// StartLogin redirects the browser to the login's provider.
func (c *Console) StartLogin(w http.ResponseWriter, r *http.Request) error {
	if address, _ := c.sessions.LoginLink(r); address == "" {
		http.Redirect(w, r, views.LoginURL, http.StatusSeeOther)
		return nil
	}
	next := afterLogin(r.URL.Query().Get("next"))
	address, err := c.sessions.StartLogin(w, r, next)
	if err != nil {
		return c.loginFailed(w, r, next, err)
	}
	http.Redirect(w, r, address, http.StatusSeeOther)
	return nil
}

// FinishLogin is the address to which the provider redirects the browser.
func (c *Console) FinishLogin(w http.ResponseWriter, r *http.Request) error {
	if address, _ := c.sessions.LoginLink(r); address == "" {
		http.Redirect(w, r, views.LoginURL, http.StatusSeeOther)
		return nil
	}
	next, err := c.sessions.FinishLogin(w, r)
	if err != nil {
		return c.loginFailed(w, r, next, err)
	}
	http.Redirect(w, r, afterLogin(next), http.StatusSeeOther)
	return nil
}

// loginFailed shows the login again, with what was wrong.
func (c *Console) loginFailed(w http.ResponseWriter, r *http.Request, next string, err error) error {
	if domain.CodeOf(err) == domain.Internal || web.GivenUp(r, err) {
		return err
	}
	return c.askForToken(w, r, web.StatusOf(err), views.LoginProps{Next: next, Refusal: domain.MessageOf(err)})
}
