package handlers

import (
	"net/http"
	"time"

	"switchyard/internal/domain"
	"switchyard/views"
)

func (c *console) project(w http.ResponseWriter, r *http.Request) error {
	return c.showProject(w, r, views.FieldError{}, nil)
}

// showProject shows the page of a project. Where settings were refused, refused says why, and the page keeps what was sent.
func (c *console) showProject(w http.ResponseWriter, r *http.Request, fault views.FieldError, refused error) error {
	name := pathParam(r, "name")
	s, err := c.look(r)
	if err != nil {
		return err
	}
	i, found := s.registry.Index(name)
	if !found {
		return domain.Errorf(domain.NotFound, "There is no project %q here.", name)
	}
	p := views.ProjectProps{
		Fragments: c.fragments,
		Project:   s.registry.Projects[i],
		Active:    s.registry.Active == name,
		Pipeline:  s.pipelines[i],
		Form:      views.ProjectForm{URL: s.registry.Projects[i].URL, Error: fault},
		Now:       time.Now(),
	}
	if refused != nil {
		p.Form.URL = r.PostForm.Get("url")
	}
	for _, agent := range c.service.Agents.Alive() {
		if agent.Project == name {
			p.Agents = append(p.Agents, agent)
		}
	}
	page, err := c.service.Events.Page(r.Context(), domain.EventQuery{Backward: true, Limit: latestEvents, Project: name})
	if err != nil {
		return err
	}
	p.Events = page.Events
	charts, err := c.service.Charts.Draw(r.Context(), s.pipelines[i:i+1])
	if err != nil {
		return err
	}
	p.Charts = charts[0]
	v := c.version()
	v.number(int64(s.changes[i]))
	v.flag(p.Project.Token != "", p.Active)
	for _, agent := range p.Agents {
		v.text(agent.ID, agent.Label, string(agent.State), agent.Detail)
	}
	v.events(p.Events)
	v.charts(p.Charts)
	p.Version = v.String()
	return c.render(w, r, view{
		frame:   views.Frame{Title: name, Page: views.PageProjects},
		version: p.Version,
		page:    views.Project(p),
		part:    views.ProjectPart(p),
		status:  statuses[domain.CodeOf(refused)],
	})
}

// updateProject changes address and token; an empty token field keeps the token.
func (c *console) updateProject(w http.ResponseWriter, r *http.Request) error {
	fields, err := decodeForm(w, r)
	if err != nil {
		return err
	}
	token := secretField(fields, "token")
	if token == nil && fields.Get("forget_token") != "" {
		token = new(domain.Secret)
	}
	name := pathParam(r, "name")
	_, err = c.service.Projects.Update(r.Context(), name, fields.Get("url"), token)
	if fault := fieldError(err); fault.Message != "" {
		return c.showProject(w, r, fault, err)
	}
	if err != nil {
		return err
	}
	return c.notices.redirect(w, r, views.ProjectURL(name), views.Notice{Text: "The settings are saved."})
}
