package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

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
	page, _ := strconv.Atoi(query.Get("page")) // 0 if it is not a number: the first page
	order, show := trackOrder(s), views.ShowOf(query.Get("show"))
	list, rows := views.NewProjectList(order, query.Get("q"), show, query.Get("sort"), page)
	p := views.ProjectsProps{
		Active: s.Registry.Active, Rows: rows, List: list, Order: order, Together: s.Together, Form: form, Now: now(),
	}
	sample := slices.ContainsFunc(s.Pipelines, c.sample.has)
	return c.render(w, r, view{
		frame:  views.Frame{Title: views.TitleWith("Projects", list.Filter), Sheet: "yard.css", Page: views.PageProjects},
		page:   views.Projects(p, sample),
		part:   views.ProjectsPart(p),
		status: web.StatusOf(refused),
	})
}

// AddProject takes the form of the Projects page, and says what answers at the address. The first project becomes the
// active one, since no other can be meant.
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
	if !check.Answers() {
		notice.Signal = views.SignalCaution
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
	return views.AddressCheck{
		URL: address, Answer: answer, Problem: domain.MessageOf(err), NeedsToken: errors.Is(err, domain.ErrTokenRefused),
	}
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
		text += " " + domain.Thousands(agents) + " agents are assigned to it again."
	}
	return c.notices.redirect(w, r, localPath(fields.Get("next")), views.Notice{Text: text})
}

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
	name, query := web.PathParam(r, "name"), r.URL.Query()
	if err := domain.CheckFilter("q", query.Get("q")); err != nil {
		return err
	}
	found, err := c.service.Overview.Project(r.Context(), name)
	if domain.CodeOf(err) == domain.NotFound {
		return domain.Errorf(domain.NotFound, "There is no project %q.", name)
	}
	if err != nil {
		return err
	}
	p := views.ProjectProps{
		Project: found.Project, Active: found.Active, Pipeline: found.Pipeline, Overdue: found.Overdue,
		Agents: found.Agents, Owners: found.Owners, Charts: found.Charts, Now: now(),
		Show: views.StoryChoice(query.Get("show")), Open: query.Get("open"), Filter: query.Get("q"),
		Reader: domain.ActorOf(r.Context()).Holder(), Sessions: map[string]domain.AgentSession{},
		Asked: c.questionsAbout(),
	}
	for story, sessions := range c.service.Sessions.ByStory() {
		if story.Project == name {
			p.Sessions[story.ID] = sessions[0]
		}
	}
	form := views.ProjectForm{URL: p.Project.URL}
	if forms.settings != nil {
		form = *forms.settings
	}
	var adding *views.StoryForm
	if !wantsPart(r) && web.InfoOf(r.Context()).Role.Allows(domain.RoleOperator) {
		var adds bool
		adds, p.Writable = c.takesChanges(r.Context(), p.Pipeline)
		if adds || forms.story.Refused != "" {
			adding = &forms.story
		}
	}
	latest, err := c.service.Events.Latest(r.Context(), name, latestEvents)
	if err != nil {
		return err
	}
	slices.Reverse(latest)
	if p.Events, err = c.service.Events.WithAuthors(r.Context(), latest); err != nil {
		return err
	}
	p.Events = p.Charts.Past.WithGit(p.Pipeline, p.Events, latestEvents)
	slices.Reverse(p.Events)
	switch props, err := c.flowProps(r, name); {
	case err == nil && len(props.Report.Stories) > 0:
		p.Flow = &props
	case err != nil && domain.CodeOf(err) != domain.Unavailable: // much of the page does not come from the store
		return err
	}
	return c.render(w, r, view{
		frame: views.Frame{
			Title: views.TitleWith(name, p.Filter), Page: views.PageProjects,
			Sheet: "project.css", Scripts: []string{"drag.js"},
		},
		page:   views.Project(p, form, adding),
		part:   views.ProjectPart(p),
		status: forms.status,
	})
}

// storyPatience is how long the page of a project waits to find out whether stories can be changed.
const storyPatience = 250 * time.Millisecond

// takesChanges reports whether stories can be added to a project, and whether those that it has can be changed: its
// first story says so. On an empty board, only trying would show whether one can be added.
func (c *Console) takesChanges(ctx context.Context, p domain.ProjectPipeline) (adds, writable bool) {
	if !p.Reachable || len(p.Stages) == 0 {
		return false, false
	}
	adds = p.Board.Layout == "" || p.Board.Layout == domain.LayoutStages // other boards' own tools add stories
	for _, stage := range p.Stages {
		if len(stage.Items) > 0 {
			ctx, cancel := context.WithTimeout(ctx, storyPatience)
			defer cancel()
			story, err := c.service.Stories.Recent(ctx, p.Project, stage.Items[0].StoryID)
			writable = err == nil && story.File != nil && story.File.Writable
			return adds && writable, writable
		}
	}
	return adds, false
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
