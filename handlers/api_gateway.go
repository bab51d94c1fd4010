package handlers

import (
	"net/http"
	"sync/atomic"

	"switchyard/internal/domain"
)

// healthz answers while the process serves.
func (g *gateway) healthz(w http.ResponseWriter, r *http.Request) {
	plainForm(w, http.StatusOK, "ok")
}

// readyz answers whether requests can be served: the store must be reachable.
func (g *gateway) readyz(w http.ResponseWriter, r *http.Request) error {
	if err := g.Service.Ready(r.Context()); err != nil {
		g.logCause(r, err)
		return domain.Errorf(domain.Unavailable, "%s", domain.MessageOf(err))
	}
	plainForm(w, http.StatusOK, "ready")
	return nil
}

var modeBody = []byte(`{"mode":"gateway"}`)

// mode tells clients that this is a gateway.
func (g *gateway) mode(w http.ResponseWriter, r *http.Request) error {
	writeEncoded(w, http.StatusOK, modeBody)
	return nil
}

type projectJSON struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

func (g *gateway) registry(w http.ResponseWriter, r *http.Request) error {
	writeEncoded(w, http.StatusOK, g.registryCache.encode(g.Service.Projects.Registry()))
	return nil
}

// registryCache holds the latest registry encoded.
type registryCache struct {
	atomic.Pointer[encodedRegistry]
}

type encodedRegistry struct {
	registry *domain.Registry
	body     []byte
}

// encode encodes a registry once: it never changes, another one takes its place.
func (c *registryCache) encode(registry *domain.Registry) []byte {
	if last := c.Load(); last != nil && last.registry == registry {
		return last.body
	}
	projects := make([]projectJSON, len(registry.Projects))
	for i, p := range registry.Projects {
		projects[i] = projectJSON{p.Name, p.URL}
	}
	body := encodeJSON(struct {
		Active   *string       `json:"active"`
		Projects []projectJSON `json:"projects"`
	}{unlessZero(registry.Active), projects})
	c.Store(&encodedRegistry{registry, body})
	return body
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
	if err := g.Service.Projects.Switch(r.Context(), name); err != nil {
		return g.refused(r, err)
	}
	writeOK(w)
	return nil
}
