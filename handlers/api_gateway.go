package handlers

import (
	"net/http"

	"switchyard/internal/yard"
)

// healthz answers while the process serves.
func (g *gateway) healthz(w http.ResponseWriter, r *http.Request) {
	plainForm(w, http.StatusOK, "ok")
}

// readyz answers whether requests can be served: the store must be reachable.
func (g *gateway) readyz(w http.ResponseWriter, r *http.Request) error {
	if err := g.Service.Ready(r.Context()); err != nil {
		g.logCause(r, err)
		return yard.Errorf(yard.Unavailable, "%s", yard.MessageOf(err))
	}
	plainForm(w, http.StatusOK, "ready")
	return nil
}

// mode tells clients that this is a gateway.
func (g *gateway) mode(w http.ResponseWriter, r *http.Request) error {
	writeJSON(w, http.StatusOK, struct {
		Mode string `json:"mode"`
	}{"gateway"})
	return nil
}

type projectJSON struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

func (g *gateway) registry(w http.ResponseWriter, r *http.Request) error {
	registry := g.Service.Registry()
	projects := make([]projectJSON, len(registry.Projects))
	for i, p := range registry.Projects {
		projects[i] = projectJSON{p.Name, p.URL}
	}
	writeJSON(w, http.StatusOK, struct {
		Active   *string       `json:"active"`
		Projects []projectJSON `json:"projects"`
	}{unlessZero(registry.Active), projects})
	return nil
}

// switchProject makes a project the active one. Every failure is a 400, an unknown project among them.
func (g *gateway) switchProject(w http.ResponseWriter, r *http.Request) error {
	body, err := decodeBody(w, r)
	if err != nil {
		return err
	}
	name, err := body.text("project")
	if err != nil {
		return err
	}
	if err := g.Service.Switch(r.Context(), name); err != nil {
		return g.refused(r, err)
	}
	writeJSON(w, http.StatusOK, struct {
		OK bool `json:"ok"`
	}{true})
	return nil
}
