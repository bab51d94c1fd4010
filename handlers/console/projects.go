package console

import (
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

// Projects is the page of the registry.
func (c *Console) Projects(w http.ResponseWriter, r *http.Request) error {
	return c.showProjects(w, r, views.ProjectForm{}, nil)
}

// showProjects shows the page. Where the form was refused, refused says why, and the page keeps what was sent.
func (c *Console) showProjects(w http.ResponseWriter, r *http.Request, form views.ProjectForm, refused error) error {
	s, err := c.service.Overview.Snapshot(r.Context())
	if err != nil {
		return err
	}
	times, err := c.service.Events.LastTimes(r.Context(), s.Registry.Projects)
	if err != nil {
		return err
	}
	p := views.ProjectsProps{Active: s.Registry.Active, Now: now()}
	for i, pipeline := range s.Pipelines {
		p.Rows = append(p.Rows, views.ProjectRow{ProjectPipeline: pipeline, Stuck: s.Alerts.Stuck[pipeline.Project], LastEvent: times[i]})
	}
	return c.render(w, r, view{
		frame:      views.Frame{Title: "Projects", Page: views.PageProjects},
		part:       views.ProjectsPart(p),
		pageAround: func(part templ.Component) templ.Component { return views.Projects(form, part) },
		status:     web.StatusOf(refused),
	})
}

// AddProject takes the form of the page Projects.
func (c *Console) AddProject(w http.ResponseWriter, r *http.Request) error {
	fields, err := decodeForm(w, r)
	if err != nil {
		return err
	}
	form := views.ProjectForm{Name: fields.Get("name"), URL: fields.Get("url")}
	p, err := c.service.Projects.Add(r.Context(), form.Name, form.URL, secretField(fields, "token"))
	if form.Error = fieldError(err); form.Error.Message != "" {
		return c.showProjects(w, r, form, err)
	}
	if err != nil {
		return err
	}
	return c.notices.redirect(w, r, views.ProjectsURL, views.Notice{Text: p.Name + " is added."})
}

// RemoveProject removes a project and offers to undo that.
func (c *Console) RemoveProject(w http.ResponseWriter, r *http.Request) error {
	name := web.PathParam(r, "name")
	removed, err := c.service.Projects.Remove(r.Context(), name)
	if err != nil {
		return err
	}
	return c.notices.redirect(w, r, views.ProjectsURL, views.Notice{
		Text: name + " is removed.",
		Undo: views.Undo{URL: views.RestoreProjectURL, Name: "removal", Value: c.removals.keep(removed)},
	})
}

// RestoreProject undoes a removal.
func (c *Console) RestoreProject(w http.ResponseWriter, r *http.Request) error {
	fields, err := decodeForm(w, r)
	if err != nil {
		return err
	}
	removed, ok := c.removals.take(fields.Get("removal"))
	if !ok {
		return domain.Errorf(domain.NotFound, "This can no longer be undone. Add the project again.")
	}
	agents, err := c.service.Projects.Restore(r.Context(), removed)
	if err != nil {
		return err
	}
	text := removed.Project.Name + " is back."
	switch agents {
	case 0:
	case 1:
		text += " An agent is assigned to it again."
	default:
		text += " " + strconv.Itoa(agents) + " agents are assigned to it again."
	}
	return c.notices.redirect(w, r, localPath(fields.Get("next")), views.Notice{Text: text})
}

// SwitchProject makes a project the active one.
func (c *Console) SwitchProject(w http.ResponseWriter, r *http.Request) error {
	fields, err := decodeForm(w, r)
	if err != nil {
		return err
	}
	name, before := fields.Get("project"), c.service.Projects.Registry().Active
	if err := c.service.Projects.Switch(r.Context(), name); err != nil {
		return err
	}
	notice := views.Notice{Text: name + " is the active project."}
	if before != "" && before != name {
		notice.Undo = views.Undo{URL: views.SwitchURL, Name: "project", Value: before}
	}
	return c.notices.redirect(w, r, localPath(fields.Get("next")), notice)
}
