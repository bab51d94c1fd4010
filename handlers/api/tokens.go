package api

import (
	"net/http"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// namedTokenJSON is a named token as it is listed.
type namedTokenJSON struct {
	ID        string      `json:"id"`
	Name      string      `json:"name"`
	Role      domain.Role `json:"role"`
	CreatedMS int64       `json:"created_at_ms"`
	ExpiresMS *int64      `json:"expires_at_ms"`   // null for never
	UsedMS    *int64      `json:"last_used_at_ms"` // null for never
}

// CreateNamedToken issues a named token. The token is shown only in this answer.
func (a *API) CreateNamedToken(w http.ResponseWriter, r *http.Request) error {
	body, err := web.DecodeJSON(w, r, web.MaxBody)
	if err != nil {
		return err
	}
	n, err := newTokenFields(body)
	if err != nil {
		return err
	}
	token, secret, err := a.service.Access.CreateToken(r.Context(), n)
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusCreated, struct {
		ID        string      `json:"id"`
		Name      string      `json:"name"`
		Role      domain.Role `json:"role"`
		Token     string      `json:"token"`
		ExpiresMS *int64      `json:"expires_at_ms"`
	}{token.ID, token.Name, token.Role, secret.Reveal(), wire.TimeOrNull(token.ExpiresAt)})
	return nil
}

func newTokenFields(b web.Body) (n service.NewToken, err error) {
	if n.Name, err = b.Text("name"); err != nil {
		return n, err
	}
	role, err := b.Text("role")
	if err != nil {
		return n, err
	}
	n.Role = domain.Role(role)
	expires, err := b.OptionalText("expires_in")
	if err != nil || expires == nil {
		return n, err
	}
	n.ExpiresIn = new(time.Duration)
	if *n.ExpiresIn, err = time.ParseDuration(*expires); err != nil {
		return n, domain.Errorf(domain.Invalid, "expires_in: must be a duration, such as 720h")
	}
	return n, nil
}

// ListNamedTokens lists the named tokens that have not been revoked.
func (a *API) ListNamedTokens(w http.ResponseWriter, _ *http.Request) error {
	tokens := []namedTokenJSON{}
	for _, t := range a.service.Access.Tokens() {
		tokens = append(tokens, namedTokenJSON{
			t.ID, t.Name, t.Role, t.CreatedAt.UnixMilli(), wire.TimeOrNull(t.ExpiresAt),
			wire.TimeOrNull(t.LastUsed),
		})
	}
	web.WriteJSON(w, http.StatusOK, struct {
		Tokens []namedTokenJSON `json:"tokens"`
	}{tokens})
	return nil
}

// RevokeNamedToken revokes a named token and ends the sessions that were begun with it.
func (a *API) RevokeNamedToken(w http.ResponseWriter, r *http.Request) error {
	if err := a.service.Access.RevokeToken(r.Context(), web.PathParam(r, "id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
