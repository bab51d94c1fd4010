package api

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/web"
)

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
	sessions := []sessionJSON{}
	for _, s := range a.service.Access.Sessions() {
		sessions = append(sessions, sessionJSON{s.ID, s.Who, s.Via, s.Role, s.CreatedAt.UnixMilli(), s.LastSeen.UnixMilli()})
	}
	web.WriteJSON(w, http.StatusOK, struct {
		Sessions []sessionJSON `json:"sessions"`
	}{sessions})
	return nil
}

// EndSession ends a session; its cookie is no longer valid.
func (a *API) EndSession(w http.ResponseWriter, r *http.Request) error {
	if err := a.service.Access.EndSession(r.Context(), web.PathParam(r, "id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
