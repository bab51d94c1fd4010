package api

import (
	"net/http"
	"sync/atomic"

	"switchyard/internal/domain"
	"switchyard/internal/web"
)

// Healthz reports that the process serves requests.
func (a *API) Healthz(w http.ResponseWriter, r *http.Request) error {
	web.Plain(w, http.StatusOK, "ok")
	return nil
}

// Readyz reports whether the store can be reached.
func (a *API) Readyz(w http.ResponseWriter, r *http.Request) error {
	if err := a.service.Ready(r.Context()); err != nil {
		a.LogCause(r, err)
		return domain.Errorf(domain.Unavailable, "%s", domain.MessageOf(err))
	}
	web.Plain(w, http.StatusOK, "ready")
	return nil
}

var modeBody = []byte(`{"mode":"gateway"}`)

// Mode identifies the server as a gateway.
func (a *API) Mode(w http.ResponseWriter, r *http.Request) error {
	web.WriteEncoded(w, http.StatusOK, modeBody)
	return nil
}

type projectJSON struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// Registry lists the projects and names the active one.
func (a *API) Registry(w http.ResponseWriter, r *http.Request) error {
	web.WriteEncoded(w, http.StatusOK, a.registryCache.encode(a.service.Projects.Registry()))
	return nil
}

// registryCache holds the latest registry, encoded.
type registryCache struct {
	atomic.Pointer[encodedRegistry]
}

type encodedRegistry struct {
	registry *domain.Registry
	body     []byte
}

// encode encodes each registry once: registries are immutable.
func (c *registryCache) encode(registry *domain.Registry) []byte {
	if last := c.Load(); last != nil && last.registry == registry {
		return last.body
	}
	projects := make([]projectJSON, len(registry.Projects))
	for i, p := range registry.Projects {
		projects[i] = projectJSON{p.Name, p.URL}
	}
	body := web.EncodeJSON(struct {
		Active   *string       `json:"active"`
		Projects []projectJSON `json:"projects"`
	}{web.OrNull(registry.Active), projects})
	c.Store(&encodedRegistry{registry, body})
	return body
}

// SwitchProject makes a project the active one. Every failure, including an unknown project, is a 400.
func (a *API) SwitchProject(w http.ResponseWriter, r *http.Request) error {
	body, err := web.DecodeJSON(w, r, web.MaxBody)
	if err != nil {
		return err
	}
	name, err := body.Text("project")
	if err != nil {
		return err
	}
	if err := a.service.Projects.Switch(r.Context(), name); err != nil {
		return a.InvalidBut(r, err)
	}
	web.WriteOK(w)
	return nil
}
