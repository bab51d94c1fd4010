package console

import (
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

// Story is the page of a story.
func (c *Console) Story(w http.ResponseWriter, r *http.Request) error {
	return c.showStory(w, r, views.StoryForm{}, 0)
}

// showStory shows the page. If a change was refused, form says why and status is not 0.
func (c *Console) showStory(w http.ResponseWriter, r *http.Request, form views.StoryForm, status int) error {
	p, err := c.storyProps(r)
	if err != nil {
		return err
	}
	return c.render(w, r, view{
		frame:      views.Frame{Title: p.Title(), Page: views.PageProjects},
		part:       views.StoryPart(p),
		pageAround: func(part templ.Component) templ.Component { return views.Story(form, part) },
		status:     status,
	})
}

// storyProps collects what is known about the request's story. It returns NotFound for an unknown one.
func (c *Console) storyProps(r *http.Request) (p views.StoryProps, err error) {
	name, id := web.PathParam(r, "name"), web.PathParam(r, "story_id")
	get := c.service.Stories.Get
	if wantsPart(r) {
		get = c.service.Stories.Recent
	}
	if p.Story, err = get(r.Context(), name, id); err != nil {
		if domain.CodeOf(err) == domain.NotFound {
			err = domain.Errorf(domain.NotFound, "The project %q has never had a story %q.", name, id)
		}
		return p, err
	}
	p.Story.Stays = slices.Clone(p.Story.Stays) // other readers share the slice
	for i := range p.Story.Stays {
		// It grows all the time; cut to the minute, unchanged content renders to the same bytes.
		p.Story.Stays[i].Blocked = p.Story.Stays[i].Blocked.Truncate(time.Minute)
	}
	project, err := c.service.Overview.Project(r.Context(), name)
	if err != nil {
		return p, err
	}
	for _, stage := range project.Pipeline.Stages {
		p.Stages = append(p.Stages, stage.Name)
	}
	if p.Alert, err = c.service.Overview.StoryAlert(r.Context(), name, id); err != nil {
		return p, err
	}
	p.Usual, p.Agents, p.Now = project.Charts.Stages, c.storyAgents(name, id), now()
	return p, nil
}

// storyAgents returns the project's agents whose output mentions the story, or else all agents assigned to the project.
func (c *Console) storyAgents(project, id string) []views.StoryAgent {
	var assigned, onStory []views.StoryAgent
	for _, a := range c.agentsAt(project) {
		shown := views.StoryAgent{KnownAgent: a, OnStory: mentions(a.Detail, id)}
		if shown.OnStory {
			onStory = append(onStory, shown)
		}
		assigned = append(assigned, shown)
	}
	if len(onStory) > 0 {
		return onStory
	}
	return assigned
}

// agentsAt returns the live agents assigned to a project, without the time of their last heartbeat, which changes all
// the time.
func (c *Console) agentsAt(project string) (agents []domain.KnownAgent) {
	for _, a := range c.service.Agents.All() {
		if a.Project == project && a.Presence == domain.AgentAlive {
			a.LastSeen = time.Time{}
			agents = append(agents, a)
		}
	}
	return agents
}

// mentions reports whether text contains word as a whole word: "1_pay" is not in "21_pay".
func mentions(text, word string) bool {
	inWord := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	for word != "" {
		before, after, found := strings.Cut(text, word)
		if !found {
			return false
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(after)
		if !inWord(last) && !inWord(next) {
			return true
		}
		text = after
	}
	return false
}
