package console

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

func (c *Console) Story(w http.ResponseWriter, r *http.Request) error {
	return c.showStory(w, r, views.StoryForm{}, 0)
}

// showStory shows the page. If a change was refused, form says why and status is not 0.
func (c *Console) showStory(w http.ResponseWriter, r *http.Request, form views.StoryForm, status int) error {
	p, err := c.storyProps(r)
	if err != nil {
		return err
	}
	isFile := wantsPart(r) && r.URL.Query().Has("file")
	var changes *views.ChangesProps
	if !wantsPart(r) || isFile {
		if of, some := c.changesOf(r, p, form); some {
			if changes = &of; of.Changes != nil {
				p.Head = of.Changes.Head
			}
		}
	}
	if isFile && changes != nil {
		return c.render(w, r, view{fragment: changes.FileShown()})
	}
	scripts := []string{"questions.js"}
	if changes != nil {
		scripts = append(scripts, "changes.js")
	}
	return c.render(w, r, view{
		frame:  views.Frame{Title: p.Title(), Sheet: "work.css", Page: views.PageProjects, Scripts: scripts},
		page:   views.Story(form, changes),
		part:   views.StoryPart(p),
		status: status,
	})
}

// storyProps collects what is known about the request's story. It returns NotFound for an unknown one.
func (c *Console) storyProps(r *http.Request) (p views.StoryProps, err error) {
	name, id := web.PathParam(r, "name"), web.PathParam(r, "story_id")
	found, err := c.service.Overview.Story(r.Context(), name, id, wantsPart(r))
	if domain.CodeOf(err) == domain.NotFound {
		err = domain.Errorf(domain.NotFound, "The project %q has never had a story %q.", name, id)
	}
	if err != nil {
		return p, err
	}
	owner := found.Owners.Of(name, id)
	sessions := c.service.Sessions.ByStory()[domain.StoryKey{Project: name, ID: id}]
	idle := func(a domain.RegisteredAgent) bool {
		isOf := func(s domain.AgentSession) bool { return s.AgentID == a.ID }
		return a.ID != owner.AgentID && !domain.Mentions(a.Detail, id) && !slices.ContainsFunc(sessions, isOf)
	}
	p = views.StoryProps{
		Story: found.Story, Alerts: found.Alerts, Usual: found.Charts.Stages, Now: now(),
		Agents: slices.DeleteFunc(slices.Clone(found.Agents), idle), Owner: owner,
		Reader:   domain.ActorOf(r.Context()).Holder(),
		Sessions: sessions,
		Chat:     views.NewChat(c.service.Bot.Status()),
	}
	about := func(q domain.Question) bool { return q.Project == name && q.StoryID == id }
	if p.Asks, _, err = c.recentQuestions(r, about, storyQuestions, views.StoryURL(name, id)); err != nil {
		return p, err
	}
	p.Story.Visits = slices.Clone(p.Story.Visits) // other readers share the slice
	for i := range p.Story.Visits {
		// It grows all the time; truncated to the minute, unchanged content renders to the same bytes.
		p.Story.Visits[i].Blocked = p.Story.Visits[i].Blocked.Truncate(time.Minute)
	}
	if p.Story.Cost != nil {
		p.Costs, _ = c.service.Costs.Usual(r.Context(), name) // without it the page says less
	}
	p.Failure, _ = strconv.ParseInt(r.URL.Query().Get("failure"), 10, 64)
	p.Stages, p.Layout, p.Main = found.Pipeline.Stages, found.Pipeline.Board.Layout, found.Pipeline.Board.Branch
	p.Head, p.MergeAttempt = r.URL.Query().Get("opened"), c.service.Reviews.MergeAttempt(name, id)
	return p, nil
}
