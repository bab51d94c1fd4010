package handlers

import (
	"net/http"

	"switchyard/internal/domain"
)

func (g *gateway) addProject(w http.ResponseWriter, r *http.Request) error {
	body, err := decodeBody(w, r)
	if err != nil {
		return err
	}
	name, err := body.text("name")
	if err != nil {
		return err
	}
	url, token, err := projectFields(body)
	if err != nil {
		return err
	}
	p, err := g.Service.Projects.Add(r.Context(), name, url, token)
	if err != nil {
		return g.refused(r, err, domain.Conflict)
	}
	writeJSON(w, http.StatusOK, projectJSON{p.Name, p.URL})
	return nil
}

func (g *gateway) updateProject(w http.ResponseWriter, r *http.Request) error {
	body, err := decodeBody(w, r)
	if err != nil {
		return err
	}
	url, token, err := projectFields(body)
	if err != nil {
		return err
	}
	p, err := g.Service.Projects.Update(r.Context(), pathParam(r, "name"), url, token)
	if err != nil {
		return g.refused(r, err, domain.NotFound)
	}
	writeJSON(w, http.StatusOK, projectJSON{p.Name, p.URL})
	return nil
}

func (g *gateway) removeProject(w http.ResponseWriter, r *http.Request) error {
	if _, err := g.Service.Projects.Remove(r.Context(), pathParam(r, "name")); err != nil {
		return g.refused(r, err, domain.NotFound)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// projectFields returns the fields of a project besides its name; the token is nil when it is not mentioned.
func projectFields(b body) (url string, token *domain.Secret, err error) {
	if url, err = b.text("url"); err != nil {
		return "", nil, err
	}
	text, err := b.optionalText("token")
	if err != nil || text == nil {
		return url, nil, err
	}
	secret := domain.Secret(*text)
	return url, &secret, nil
}
