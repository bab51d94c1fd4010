package api

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/web"
)

type projectJSON struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

func (a *API) Registry(w http.ResponseWriter, r *http.Request) error {
	registry := a.service.Projects.Registry()
	last := a.registry.Load()
	if last == nil || last.registry != registry { // registries are immutable
		last = &encodedRegistry{registry, encodeRegistry(registry)}
		a.registry.Store(last)
	}
	web.WriteEncoded(w, http.StatusOK, last.body)
	return nil
}

type encodedRegistry struct {
	registry *domain.Registry
	body     []byte
}

func encodeRegistry(registry *domain.Registry) []byte {
	projects := make([]projectJSON, len(registry.Projects))
	for i, p := range registry.Projects {
		projects[i] = projectJSON{p.Name, p.URL}
	}
	return web.EncodeJSON(struct {
		Active   *string       `json:"active"`
		Projects []projectJSON `json:"projects"`
	}{web.OrNull(registry.Active), projects})
}

// SwitchProject makes a project the active one. Every failure, including an unknown project, is a 400.
func (a *API) SwitchProject(w http.ResponseWriter, r *http.Request) error {
	body := web.DecodeJSON(w, r, web.MaxBody)
	name := body.Text("project")
	if err := body.Err(); err != nil {
		return err
	}
	if err := a.service.Projects.Switch(r.Context(), name); err != nil {
		return a.InvalidBut(r, err)
	}
	return ok(w, nil)
}

func (a *API) AddProject(w http.ResponseWriter, r *http.Request) error {
	body := web.DecodeJSON(w, r, web.MaxBody)
	name, url, token := body.Text("name"), body.Text("url"), (*domain.Secret)(body.OptionalText("token"))
	if err := body.Err(); err != nil {
		return err
	}
	p, err := a.service.Projects.Add(r.Context(), name, url, token)
	if err != nil {
		return a.InvalidBut(r, err, domain.Conflict)
	}
	return answer(w, http.StatusOK, projectJSON{p.Name, p.URL}, nil)
}

func (a *API) UpdateProject(w http.ResponseWriter, r *http.Request) error {
	body := web.DecodeJSON(w, r, web.MaxBody)
	url, token := body.Text("url"), (*domain.Secret)(body.OptionalText("token"))
	if err := body.Err(); err != nil {
		return err
	}
	p, err := a.service.Projects.Update(r.Context(), web.PathParam(r, "name"), url, token)
	if err != nil {
		return a.InvalidBut(r, err, domain.NotFound)
	}
	return answer(w, http.StatusOK, projectJSON{p.Name, p.URL}, nil)
}

func (a *API) RemoveProject(w http.ResponseWriter, r *http.Request) error {
	if _, err := a.service.Projects.Remove(r.Context(), web.PathParam(r, "name")); err != nil {
		return a.InvalidBut(r, err, domain.NotFound)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
