package handlers

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/web"
)

// errWallRevoked is why a display whose link is no longer in force sees nothing.
var errWallRevoked = domain.Errorf(domain.Unauthorized, "This display's link was revoked; Access makes a new one.")

// Base returns the address of this gateway for people, without a trailing slash.
func (a *access) Base(r *http.Request) string {
	if a.logins.publicURL != "" {
		return a.logins.publicURL
	}
	return web.Origin(r).String()
}

// wallCookieAge is how long a browser keeps a display's cookie, in seconds: the longest that browsers allow. Each
// request for the wall renews it.
const wallCookieAge = 400 * 24 * 60 * 60

// authenticateWall accepts the token of a wall display, in the address or in its cookie, and everybody else who may see
// the wall. A token in the address becomes the cookie. It returns errWallRevoked if there is a token that is not in
// force, and no other login.
func (a *access) authenticateWall(w http.ResponseWriter, r *http.Request, c *caller) error {
	shown := r.URL.Query().Get(web.WallToken)
	cookie := sessionCookie(a.sessions.name+"_wall", web.IsHTTPS(r), shown, wallCookieAge)
	if sent, err := r.Cookie(cookie.Name); shown == "" && err == nil {
		shown, cookie.Value = sent.Value, sent.Value
	}
	if shown != "" && !a.open {
		if who := a.named.AnyToken(r.Context(), domain.Secret(shown)); who != nil && who.Role == domain.RoleWall {
			http.SetCookie(w, cookie)
			c.Identity, c.auth = *who, web.AuthToken
			return nil
		}
	}
	err := a.authenticate(w, r, c)
	if domain.CodeOf(err) == domain.Unauthorized && (shown != "" || r.URL.Query().Has(web.WallToken)) {
		return errWallRevoked
	}
	return err
}
