package console

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

// Projects is the page of the registry.
func (c *Console) Projects(w http.ResponseWriter, r *http.Request) error {
	return c.showProjects(w, r, views.ProjectForm{}, nil)
}

// showProjects shows the page. If the form was refused, refused says why, and the page keeps what was typed.
func (c *Console) showProjects(w http.ResponseWriter, r *http.Request, form views.ProjectForm, refused error) error {
	s := c.service.Overview.Snapshot(r.Context())
	query := r.URL.Query()
	if err := domain.CheckFilter("q", query.Get("q")); err != nil {
		return err
	}
	page, _ := strconv.Atoi(query.Get("page")) // 0 for what is not a number: the first page
	list, shown := views.NewProjectList(s.Pipelines, query.Get("q"), page)
	listed := make([]domain.Project, len(shown))
	for i, at := range shown {
		listed[i] = s.Registry.Projects[at]
	}
	times, err := c.service.Events.LastTimes(r.Context(), listed)
	if err != nil {
		return err
	}
	p := views.ProjectsProps{Active: s.Registry.Active, List: list, Now: now()}
	for i, at := range shown {
		pipeline := s.Pipelines[at]
		p.Rows = append(p.Rows, views.ProjectRow{
			ProjectPipeline: pipeline, Stuck: s.Alerts.Stuck[pipeline.Project], Days: s.Charts[at].Days, LastEvent: times[i],
		})
	}
	return c.render(w, r, view{
		frame:      views.Frame{Title: "Projects", Page: views.PageProjects},
		part:       views.ProjectsPart(p),
		pageAround: func(part templ.Component) templ.Component { return views.Projects(form, list, part) },
		status:     web.StatusOf(refused),
	})
}

// AddProject takes the form of the Projects page, and says what answers at the address. The first project becomes the
// active one, since there is no other to mean.
func (c *Console) AddProject(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	form := views.ProjectForm{Name: fields.Get("name"), URL: fields.Get("url")}
	address, token := withScheme(form.URL), secretField(fields, "token")
	p, err := c.service.Projects.Add(r.Context(), form.Name, address, token)
	if form.Error = fieldError(err); form.Error.Message != "" {
		return c.showProjects(w, r, form, err)
	}
	if err != nil {
		return err
	}
	notice := views.Notice{Text: p.Name + " is added."}
	if registry := c.service.Projects.Registry(); len(registry.Projects) == 1 && registry.Active == "" {
		if err := c.service.Projects.Switch(r.Context(), p.Name); err != nil {
			return err
		}
		notice.Text += " It is the active project."
	}
	check := c.checkAddress(r.Context(), address, token)
	notice.Text += " " + check.Words()
	if notice.Caution = !check.Answers(); notice.Caution {
		notice.Undo = views.Undo{URL: views.RemoveProjectURL(p.Name), Label: "Remove it again"}
	}
	return c.notices.redirect(w, r, views.ProjectsURL, notice)
}

// CheckAddress says what answers at the address in the form of the Projects page, before the form is sent.
func (c *Console) CheckAddress(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	var check views.AddressCheck
	if strings.TrimSpace(fields.Get("url")) != "" {
		check = c.checkAddress(r.Context(), withScheme(fields.Get("url")), secretField(fields, "token"))
	}
	return c.writeFragment(w, r, views.AddressAnswer(check))
}

func (c *Console) checkAddress(ctx context.Context, address string, token *domain.Secret) views.AddressCheck {
	answer, err := c.service.Pipelines.CheckAddress(ctx, address, token)
	if fault := fieldError(err); fault.Message != "" {
		return views.AddressCheck{URL: address, Problem: fault.Message, Refused: true}
	}
	return views.AddressCheck{URL: address, Answer: answer, Problem: domain.MessageOf(err)}
}

// withoutScheme matches an address without a scheme: localhost, or a host with a port or a dot, and an optional path.
var withoutScheme = regexp.MustCompile(`^(?:localhost|\[[0-9A-Fa-f:.]+\]|[^/:\s]+\.[^/:\s]+|[^/:\s]+:[0-9]+)` +
	`(?::[0-9]+)?(?:/\S*)?$`)

// withScheme adds http:// to an address without a scheme: "localhost:3001".
func withScheme(address string) string {
	if address = strings.TrimSpace(address); withoutScheme.MatchString(address) {
		return "http://" + address
	}
	return address
}

// RemoveProject removes a project and offers an Undo.
func (c *Console) RemoveProject(w http.ResponseWriter, r *http.Request) error {
	name := web.PathParam(r, "name")
	removed, err := c.service.Projects.Remove(r.Context(), name)
	if err != nil {
		return err
	}
	notice := views.Notice{Text: name + " is removed."}
	if id, err := c.service.Projects.KeepRemoval(r.Context(), removed); err != nil {
		c.LogCause(r, err)
	} else {
		notice.Undo = views.Undo{URL: views.RestoreProjectURL, Name: "removal", Value: id}
	}
	return c.notices.redirect(w, r, views.ProjectsURL, notice)
}

// RestoreProject undoes a removal.
func (c *Console) RestoreProject(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	removed, agents, err := c.service.Projects.UndoRemoval(r.Context(), fields.Get("removal"))
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
func (c *Console) SwitchProject(w http.ResponseWriter, r *http.Request, fields url.Values) error {
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
