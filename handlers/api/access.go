package api

import (
	"net/http"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

type namedTokenJSON struct {
	ID        string      `json:"id"`
	Name      string      `json:"name"`
	Role      domain.Role `json:"role"`
	CreatedBy string      `json:"created_by"`
	CreatedMS int64       `json:"created_at_ms"`
	ExpiresMS *int64      `json:"expires_at_ms"`   // null for never
	UsedMS    *int64      `json:"last_used_at_ms"` // null for never
}

// CreateNamedToken issues a named token. The token is shown only in this answer.
func (a *API) CreateNamedToken(w http.ResponseWriter, r *http.Request) error {
	b := web.DecodeJSON(w, r, web.MaxBody)
	t := domain.NamedToken{Name: b.Text("name"), Role: domain.Role(b.Text("role"))}
	expires := b.OptionalText("expires_in")
	if err := b.Err(); err != nil {
		return err
	}
	var expiresIn *time.Duration
	if expires != nil {
		life, err := time.ParseDuration(*expires)
		if err != nil {
			return domain.Errorf(domain.Invalid, "expires_in: must be a duration, such as 720h")
		}
		expiresIn = &life
	}
	token, secret, err := a.service.Access.CreateToken(r.Context(), t, expiresIn)
	var link *string
	if token.Role == domain.RoleWall {
		link = new(web.WallLink(a.base(r), secret))
	}
	return answer(w, http.StatusCreated, struct {
		ID        string      `json:"id"`
		Name      string      `json:"name"`
		Role      domain.Role `json:"role"`
		Token     string      `json:"token"`
		URL       *string     `json:"url,omitempty"` // of a wall display
		ExpiresMS *int64      `json:"expires_at_ms"`
	}{token.ID, token.Name, token.Role, secret.Reveal(), link, wire.TimeOrNull(token.ExpiresAt)}, err)
}

// ListNamedTokens lists the named tokens that have not been revoked.
func (a *API) ListNamedTokens(w http.ResponseWriter, _ *http.Request) error {
	tokens := domain.Map(a.service.Access.Tokens(), func(t domain.NamedToken) namedTokenJSON {
		return namedTokenJSON{
			t.ID, t.Name, t.Role, t.CreatedBy, t.CreatedAt.UnixMilli(), wire.TimeOrNull(t.ExpiresAt),
			wire.TimeOrNull(t.LastUsed),
		}
	})
	return answer(w, http.StatusOK, map[string]any{"tokens": tokens}, nil)
}

type sessionJSON struct {
	ID        string      `json:"id"`
	Who       string      `json:"who"`
	Via       domain.Via  `json:"via"`
	Role      domain.Role `json:"role"`
	CreatedMS int64       `json:"created_at_ms"`
	SeenMS    int64       `json:"last_seen_ms"`
}

// ListSessions lists the sessions that have not ended, newest first.
func (a *API) ListSessions(w http.ResponseWriter, _ *http.Request) error {
	sessions := domain.Map(a.service.Access.Sessions(), func(s domain.Session) sessionJSON {
		return sessionJSON{s.ID, s.Who, s.Via, s.Role, s.CreatedAt.UnixMilli(), s.LastSeen.UnixMilli()}
	})
	return answer(w, http.StatusOK, map[string]any{"sessions": sessions}, nil)
}
