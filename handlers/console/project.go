package console

import (
	"net/http"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

// Project is the page of one project.
func (c *Console) Project(w http.ResponseWriter, r *http.Request) error {
	return c.showProject(w, r, views.FieldError{}, nil)
}

// showProject shows the page of a project. Where settings were refused, refused says why, and the page keeps what was sent.
func (c *Console) showProject(w http.ResponseWriter, r *http.Request, fault views.FieldError, refused error) error {
	name := web.PathParam(r, "name")
	found, err := c.service.Overview.Project(r.Context(), name)
	if domain.CodeOf(err) == domain.NotFound {
		return domain.Errorf(domain.NotFound, "There is no project %q.", name)
	}
	if err != nil {
		return err
	}
	p := views.ProjectProps{
		Project: found.Project, Active: found.Active, Pipeline: found.Pipeline, Stuck: found.Stuck, Agents: found.Agents, Charts: found.Charts, Now: now(),
	}
	form := views.ProjectForm{URL: p.Project.URL, Error: fault}
	if refused != nil {
		form.URL = r.PostForm.Get("url")
	}
	latest, err := c.service.Events.Page(r.Context(), domain.EventQuery{Backward: true, Limit: latestEvents, Project: name})
	if err != nil {
		return err
	}
	p.Events = latest.Events
	return c.render(w, r, view{
		frame:      views.Frame{Title: name, Page: views.PageProjects},
		part:       views.ProjectPart(p),
		pageAround: func(part templ.Component) templ.Component { return views.Project(p, form, part) },
		status:     web.StatusOf(refused),
	})
}

// UpdateProject changes address and token; an empty token field keeps the token.
func (c *Console) UpdateProject(w http.ResponseWriter, r *http.Request) error {
	fields, err := decodeForm(w, r)
	if err != nil {
		return err
	}
	token := secretField(fields, "token")
	if token == nil && fields.Get("forget_token") != "" {
		token = new(domain.Secret)
	}
	name := web.PathParam(r, "name")
	_, err = c.service.Projects.Update(r.Context(), name, fields.Get("url"), token)
	if fault := fieldError(err); fault.Message != "" {
		return c.showProject(w, r, fault, err)
	}
	if err != nil {
		return err
	}
	return c.notices.redirect(w, r, views.ProjectURL(name), views.Notice{Text: "The settings are saved."})
}
