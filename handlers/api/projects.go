package api

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

type projectJSON struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

func (a *API) Registry(w http.ResponseWriter, r *http.Request) error {
	registry := a.service.Projects.Registry()
	return answer(w, http.StatusOK, map[string]any{
		"active": wire.OrNull(registry.Active), "projects": projectsJSON(registry),
	}, nil)
}

// ListProjects is Registry at the address where projects are added, for those who look there.
func (a *API) ListProjects(w http.ResponseWriter, r *http.Request) error {
	return answer(w, http.StatusOK, map[string]any{"projects": projectsJSON(a.service.Projects.Registry())}, nil)
}

func projectsJSON(registry *domain.Registry) []projectJSON {
	return domain.Map(registry.Projects, func(p domain.Project) projectJSON { return projectJSON{p.Name, p.URL} })
}

// SwitchProject makes a project the active one. Every failure, including an unknown project, is a 400.
func (a *API) SwitchProject(w http.ResponseWriter, r *http.Request) error {
	body := web.DecodeJSON(w, r, web.MaxBody)
	name := body.Text("project")
	if err := body.Err(); err != nil {
		return err
	}
	return ok(w, a.InvalidBut(r, a.service.Projects.Switch(r.Context(), name)))
}

func (a *API) AddProject(w http.ResponseWriter, r *http.Request) error {
	body := web.DecodeJSON(w, r, web.MaxBody)
	name, url, token := body.Text("name"), body.Text("url"), (*domain.Secret)(body.OptionalText("token"))
	if err := body.Err(); err != nil {
		return err
	}
	p, err := a.service.Projects.Add(r.Context(), name, url, token)
	return answer(w, http.StatusOK, projectJSON{p.Name, p.URL}, a.InvalidBut(r, err, domain.Conflict))
}

func (a *API) UpdateProject(w http.ResponseWriter, r *http.Request) error {
	body := web.DecodeJSON(w, r, web.MaxBody)
	url, token := body.Text("url"), (*domain.Secret)(body.OptionalText("token"))
	if err := body.Err(); err != nil {
		return err
	}
	p, err := a.service.Projects.Update(r.Context(), web.PathParam(r, "name"), url, token)
	return answer(w, http.StatusOK, projectJSON{p.Name, p.URL}, a.InvalidBut(r, err, domain.NotFound))
}

func (a *API) RemoveProject(w http.ResponseWriter, r *http.Request) error {
	_, err := a.service.Projects.Remove(r.Context(), web.PathParam(r, "name"))
	return noContent(w, a.InvalidBut(r, err, domain.NotFound))
}
