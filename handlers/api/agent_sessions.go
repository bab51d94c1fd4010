package api

import (
	"net/http"

	"switchyard/internal/wire"
)

// ListAgentSessions lists the sessions of coding agents, those that wait for a person first.
func (a *API) ListAgentSessions(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, http.StatusOK, wire.NewAgentSessions(a.service.Sessions.List()), nil)
}
