package console

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

func (c *Console) Access(w http.ResponseWriter, r *http.Request) error {
	return c.showAccess(w, r, newTokenForm, views.GivenToken{}, nil)
}

// newTokenForm is the empty form. By default a token expires, so that forgotten ones do not stay valid.
var newTokenForm = views.TokenForm{Role: domain.RoleViewer, Expires: "2160h"}

// showAccess shows the page: with a form that was refused, or with a token that was just issued, which is shown only
// once.
func (c *Console) showAccess(w http.ResponseWriter, r *http.Request, form views.TokenForm, given views.GivenToken,
	refused error,
) error {
	info := web.InfoOf(r.Context())
	p := views.AccessProps{
		Open: info.Auth == web.AuthNotRequired, Own: info.SessionID, Sessions: c.service.Access.Sessions(),
		Tokens:     c.service.Access.Tokens(),
		AdminToken: c.sessions.HasAdminToken(), Agents: len(c.service.Agents.All()), Form: form, Given: given,
		Now: now().In(zone(r)),
	}
	_, p.Provider = c.sessions.LoginLink(r)
	var err error
	if p.Gateways, err = c.service.Gateways(r.Context()); err != nil {
		c.LogCause(r, err) // the rest of the page can still be shown
	}
	return c.render(w, r, view{
		frame: views.Frame{Title: "Access", Sheet: "yard.css", Page: views.PageAccess}, page: views.Access(p),
		status: web.StatusOf(refused), once: given.Token != "",
	})
}

// CreateNamedToken takes the form that issues a token. The token is shown once, in the answer to the form.
func (c *Console) CreateNamedToken(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	form := views.TokenForm{
		Name: fields.Get("name"), Role: domain.Role(fields.Get("role")),
		Expires: fields.Get("expires_in"),
	}
	if form.Role == domain.RoleWall && strings.TrimSpace(form.Name) == "" {
		form.Name = "Wall display"
	}
	var expiresIn *time.Duration
	if form.Expires != "" {
		life, _ := time.ParseDuration(form.Expires) // 0 if it is not a duration, which the service refuses
		expiresIn = &life
	}
	t := domain.NamedToken{Name: form.Name, Role: form.Role}
	token, secret, err := c.service.Access.CreateToken(r.Context(), t, expiresIn)
	if form.Error = fieldError(err); form.Error.Message != "" {
		return c.showAccess(w, r, form, views.GivenToken{}, err)
	}
	if err != nil {
		return err
	}
	given := views.GivenToken{Name: token.Name, Token: secret}
	if token.Role == domain.RoleWall {
		given.Link = web.WallLink(c.sessions.Base(r), secret)
	}
	return c.showAccess(w, r, newTokenForm, given, nil)
}

func (c *Console) RevokeNamedToken(w http.ResponseWriter, r *http.Request) error {
	err := c.service.Access.RevokeToken(r.Context(), web.PathParam(r, "id"))
	return c.done(w, r, views.AccessURL, views.Notice{Text: "The token is revoked."}, err,
		"This token had already been revoked.")
}

// EndSession ends a session, perhaps the reader's own.
func (c *Console) EndSession(w http.ResponseWriter, r *http.Request) error {
	err := c.service.Access.EndSession(r.Context(), web.PathParam(r, "id"))
	return c.done(w, r, views.AccessURL, views.Notice{Text: "The session has ended."}, err,
		"This session had already ended.")
}

// EndOtherSessions ends all sessions but the reader's own.
func (c *Console) EndOtherSessions(w http.ResponseWriter, r *http.Request) error {
	ended, err := c.service.Access.EndOtherSessions(r.Context(), web.InfoOf(r.Context()).SessionID)
	text := domain.Count(ended, "other session has ended.", "other sessions have ended.")
	return c.done(w, r, views.AccessURL, views.Notice{Text: text}, err, "")
}
