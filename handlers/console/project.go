package console

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

// Project is the page of one project.
func (c *Console) Project(w http.ResponseWriter, r *http.Request) error {
	return c.showProject(w, r, projectForms{})
}

// projectForms holds what was typed on the page of a project, and why it was refused.
type projectForms struct {
	settings *views.ProjectForm // nil shows what is stored
	story    views.StoryForm
	status   int // 0 while nothing was refused
}

// showProject shows the page of a project. If a form was refused, the page keeps what was typed.
func (c *Console) showProject(w http.ResponseWriter, r *http.Request, forms projectForms) error {
	name := web.PathParam(r, "name")
	found, err := c.service.Overview.Project(r.Context(), name)
	if domain.CodeOf(err) == domain.NotFound {
		return domain.Errorf(domain.NotFound, "There is no project %q.", name)
	}
	if err != nil {
		return err
	}
	p := views.ProjectProps{
		Project: found.Project, Active: found.Active, Pipeline: found.Pipeline, Stuck: found.Stuck,
		Agents: found.Agents, Charts: found.Charts, Now: now(),
	}
	form := views.ProjectForm{URL: p.Project.URL}
	if forms.settings != nil {
		form = *forms.settings
	}
	var adding *views.StoryForm
	mayAdd := !wantsPart(r) && web.InfoOf(r.Context()).Role.Allows(domain.RoleOperator)
	if mayAdd && (forms.story.Refused != "" || c.takesStories(r.Context(), p.Pipeline)) {
		adding = &forms.story
	}
	if p.Events, err = c.service.Events.Latest(r.Context(), name, latestEvents); err != nil {
		return err
	}
	return c.render(w, r, view{
		frame:      views.Frame{Title: name, Page: views.PageProjects},
		part:       views.ProjectPart(p),
		pageAround: func(part templ.Component) templ.Component { return views.Project(p, form, adding, part) },
		status:     forms.status,
	})
}

// storyPatience is how long the page of a project waits to find out whether stories can be added.
const storyPatience = 250 * time.Millisecond

// takesStories reports whether stories can be added to a project: if its first story can be changed, or if the board is
// empty, where only trying would show it.
func (c *Console) takesStories(ctx context.Context, p domain.ProjectPipeline) bool {
	if !p.Reachable || len(p.Stages) == 0 {
		return false
	}
	for _, stage := range p.Stages {
		if len(stage.Items) > 0 {
			ctx, cancel := context.WithTimeout(ctx, storyPatience)
			defer cancel()
			story, err := c.service.Stories.Recent(ctx, p.Project, stage.Items[0].StoryID)
			return err == nil && story.File != nil && story.File.Writable
		}
	}
	return true
}

// UpdateProject changes address and token; an empty token field keeps the token.
func (c *Console) UpdateProject(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	token := secretField(fields, "token")
	if token == nil && fields.Get("forget_token") != "" {
		token = new(domain.Secret)
	}
	name := web.PathParam(r, "name")
	_, err := c.service.Projects.Update(r.Context(), name, withScheme(fields.Get("url")), token)
	if fault := fieldError(err); fault.Message != "" {
		settings := &views.ProjectForm{URL: fields.Get("url"), Error: fault}
		return c.showProject(w, r, projectForms{settings: settings, status: web.StatusOf(err)})
	}
	if err != nil {
		return err
	}
	return c.notices.redirect(w, r, views.ProjectURL(name), views.Notice{Text: "The settings are saved."})
}
