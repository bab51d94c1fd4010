package api

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/web"
)

// AddProject registers a project.
func (a *API) AddProject(w http.ResponseWriter, r *http.Request) error {
	body, err := web.DecodeJSON(w, r, web.MaxBody)
	if err != nil {
		return err
	}
	name, err := body.Text("name")
	if err != nil {
		return err
	}
	url, token, err := projectFields(body)
	if err != nil {
		return err
	}
	p, err := a.service.Projects.Add(r.Context(), name, url, token)
	if err != nil {
		return a.InvalidBut(r, err, domain.Conflict)
	}
	web.WriteJSON(w, http.StatusOK, projectJSON{p.Name, p.URL})
	return nil
}

// UpdateProject changes a project's address or token.
func (a *API) UpdateProject(w http.ResponseWriter, r *http.Request) error {
	body, err := web.DecodeJSON(w, r, web.MaxBody)
	if err != nil {
		return err
	}
	url, token, err := projectFields(body)
	if err != nil {
		return err
	}
	p, err := a.service.Projects.Update(r.Context(), web.PathParam(r, "name"), url, token)
	if err != nil {
		return a.InvalidBut(r, err, domain.NotFound)
	}
	web.WriteJSON(w, http.StatusOK, projectJSON{p.Name, p.URL})
	return nil
}

// RemoveProject removes a project from the registry.
func (a *API) RemoveProject(w http.ResponseWriter, r *http.Request) error {
	if _, err := a.service.Projects.Remove(r.Context(), web.PathParam(r, "name")); err != nil {
		return a.InvalidBut(r, err, domain.NotFound)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// projectFields returns a project's fields besides its name; the token is nil when it is left out.
func projectFields(b web.Body) (url string, token *domain.Secret, err error) {
	if url, err = b.Text("url"); err != nil {
		return "", nil, err
	}
	text, err := b.OptionalText("token")
	if err != nil || text == nil {
		return url, nil, err
	}
	secret := domain.Secret(*text)
	return url, &secret, nil
}
