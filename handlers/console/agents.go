package console

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

func (c *Console) Agents(w http.ResponseWriter, r *http.Request) error {
	if err := domain.CheckFilter("q", r.URL.Query().Get("q")); err != nil {
		return err
	}
	return c.showAgents(w, r, view{}, views.AgentsPageProps{}, views.Notice{})
}

// showAgents shows the page, or only its table if that was requested, with the result of the last action.
func (c *Console) showAgents(w http.ResponseWriter, r *http.Request, v view, around views.AgentsPageProps,
	said views.Notice,
) error {
	p := views.AgentsProps{
		Projects: c.projectNames(), Reader: domain.ActorOf(r.Context()).Holder(), Said: said, Now: now(),
	}
	isOpen := func(q domain.Question) bool { return q.State == domain.QuestionOpen }
	var err error
	if p.Asks, _, err = c.recentQuestions(r, isOpen, shownQuestions, views.AgentsURL); err != nil {
		return err
	}
	p.Gateway = addressOf(r).String()
	if web.InfoOf(r.Context()).Auth != web.AuthNotRequired {
		p.Gateway += " SWITCHYARD_API_TOKEN=…"
	}
	c.addSessions(r.Context(), &p)
	c.arrange(r, &p)
	p.Work = c.agentsWork(r.Context(), p.Agents)
	c.addDue(r.Context(), &p)
	if p.Today, err = c.service.Costs.Today(r.Context(), zone(r)); err != nil &&
		domain.CodeOf(err) != domain.Unavailable {
		return err
	}
	if p.Tokens, err = c.service.Agents.UnusedJoinTokens(r.Context()); err != nil &&
		domain.CodeOf(err) != domain.Unavailable {
		return err
	}
	around.List = p.List
	around.MCP = views.MCPProps{Gateway: addressOf(r).String(), Token: web.InfoOf(r.Context()).Auth != web.AuthNotRequired}
	v.page = views.Agents(around)
	v.frame = views.Frame{Title: views.TitleWith("Agents", p.List.Filter), Sheet: "yard.css", Page: views.PageAgents}
	v.part = views.AgentsPart(p)
	return c.render(w, r, v)
}

// addSessions adds the sessions of coding agents, with their stories.
func (c *Console) addSessions(ctx context.Context, p *views.AgentsProps) {
	p.Sessions, p.Stories = c.service.Sessions.List(), map[domain.StoryKey]views.AgentWork{}
	owners := c.service.Overview.Snapshot(ctx).Owners
	for _, s := range p.Sessions {
		if item, stage := c.service.Pipelines.Known(s.Project, s.StoryID); item != nil {
			holder := owners.Of(s.Project, s.StoryID).Holder
			p.Stories[s.Story()] = views.AgentWork{Item: *item, Stage: stage.Title(), Holder: holder}
		}
	}
}

// addDue adds what is due for review because all who work on a story are idle, if project servers answer at once.
func (c *Console) addDue(ctx context.Context, p *views.AgentsProps) {
	ctx, cancel := context.WithTimeout(ctx, storyPatience)
	defer cancel()
	p.Due = map[domain.StoryKey]*domain.Place{}
	sessions := c.service.Sessions.ByStory()
	for _, key := range p.IdleStories() {
		if story, err := c.service.Stories.Recent(ctx, key.Project, key.ID); err == nil {
			p.AddDue(story, sessions[key])
		}
	}
}

// AddAgent issues a join token, which is shown once, in the answer to the form. If the agent's label, project and
// command are given afterwards, the new token replaces the one before.
func (c *Console) AddAgent(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	form := views.JoinForm{
		Label: strings.TrimSpace(fields.Get("label")), Project: fields.Get("project"),
		Command: fields.Get("command"), Projects: c.projectNames(),
	}
	if form.Label != "" {
		form.Error = fieldError(domain.CheckAgentLabel(form.Label))
	}
	if form.Error.Message == "" {
		form.Error = fieldError(views.CheckCommand(form.Command))
	}
	secret, token, err := c.service.Agents.CreateJoinToken(r.Context(), form.Project)
	if domain.CodeOf(err) == domain.Invalid { // the project may just have been removed
		form.Error, form.Project = views.FieldError{Field: "project", Message: views.Sentence(domain.MessageOf(err))}, ""
		secret, token, err = c.service.Agents.CreateJoinToken(r.Context(), "")
	}
	if err != nil {
		return err
	}
	if before := fields.Get("instead"); before != "" {
		if err := c.service.Agents.RevokeJoinToken(r.Context(), before); err != nil && domain.CodeOf(err) != domain.NotFound {
			return err
		}
	}
	address := addressOf(r)
	return c.showJoin(w, r, token, views.NewToken{
		Token: secret, Hash: token.Hash, Address: address.String(),
		Local: isLoopback(address.Hostname()), Form: form,
	})
}

// JoinToken shows whether a token has been redeemed: only that part of the page, or the page without the token.
func (c *Console) JoinToken(w http.ResponseWriter, r *http.Request) error {
	token, err := c.service.Agents.JoinToken(r.Context(), web.PathParam(r, "hash"))
	if err != nil {
		return err
	}
	if !wantsPart(r) {
		return c.showJoin(w, r, token, views.NewToken{})
	}
	if agent, joined := c.service.Agents.Find(token.UsedBy); joined { // the panel becomes the agent's line
		w.Header().Set("HX-Redirect", views.AgentURL(agent.ID))
		return c.notices.keep(w, views.Notice{Text: agent.Label + " joined" + views.AssignedTo(agent.Project) + "."})
	}
	return c.render(w, r, view{part: c.joinState(token)})
}

func (c *Console) joinState(token domain.JoinToken) views.Part {
	p := views.JoinProps{Token: token, Now: clock.Now()} // to the second: it decides whether the token has expired
	p.Agent, _ = c.service.Agents.Find(token.UsedBy)
	return views.JoinState(p)
}

// showJoin shows the page with the Add agent panel open.
func (c *Console) showJoin(w http.ResponseWriter, r *http.Request, token domain.JoinToken, given views.NewToken) error {
	state, err := c.renderPart(r.Context(), c.joinState(token))
	if err != nil {
		return err
	}
	return c.showAgents(w, r, view{once: true}, views.AgentsPageProps{Token: given, State: templ.Raw(state.html)},
		views.Notice{})
}

// agentsWork returns the stories that agents work on, by agent: what one has claimed takes precedence over what its
// output mentions.
func (c *Console) agentsWork(ctx context.Context, agents []domain.RegisteredAgent) map[string]views.AgentWork {
	work, seen := map[string]views.AgentWork{}, map[string]bool{"": true}
	s := c.service.Overview.Snapshot(ctx)
	for _, a := range agents {
		at, known := s.Registry.Index(a.Project)
		if !known || seen[a.Project] {
			continue
		}
		seen[a.Project] = true
		stages := s.Pipelines[at].Stages
		for _, stage := range stages[:domain.OpenStages(stages)] {
			for _, item := range stage.Items {
				owner := s.Owners.Of(a.Project, item.StoryID)
				if has, found := work[owner.AgentID]; owner.AgentID != "" && (!found || has.Holder == "" && owner.Holder != "") {
					work[owner.AgentID] = views.AgentWork{Item: item, Stage: stage.Title(), Holder: owner.Holder}
				}
			}
		}
	}
	return work
}

// arrange chooses the page of the list that the address asks for, or that a form was sent from.
func (c *Console) arrange(r *http.Request, p *views.AgentsProps) {
	query := r.URL.Query()
	if r.Method == http.MethodPost {
		query = nil
		from, err := url.Parse(cmp.Or(r.Header.Get("HX-Current-URL"), r.Referer()))
		if err == nil && from.Path == views.AgentsURL && domain.CheckFilter("q", from.Query().Get("q")) == nil {
			query = from.Query()
		}
	}
	page, _ := strconv.Atoi(query.Get("page")) // 0 if it is not a number: the first page
	p.Arrange(c.service.Agents.All(), query.Get("q"), query.Get("show"), page, query.Get("at"))
}

func (c *Console) RevokeToken(w http.ResponseWriter, r *http.Request) error {
	err := c.service.Agents.RevokeJoinToken(r.Context(), web.PathParam(r, "hash"))
	return c.answerAgents(w, r, views.Notice{Text: "The join token is revoked."}, err)
}

func (c *Console) AssignAgent(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	id := web.PathParam(r, "id")
	before, _ := c.service.Agents.Find(id)
	agent, err := c.service.Agents.Assign(r.Context(), id, strings.TrimSpace(fields.Get("project")))
	was, is := before.Project, agent.Project
	said := views.Notice{Text: agent.Label + " is unassigned."}
	if is != "" {
		said.Text = agent.Label + " is assigned to " + is + "."
	}
	if is != was {
		said.Undo = views.Undo{URL: views.AssignAgentURL(id), Name: "project", Value: was}
	}
	return c.answerAgents(w, r, said, err)
}

func (c *Console) LabelAgent(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	agent, err := c.service.Agents.SetLabel(r.Context(), web.PathParam(r, "id"), strings.TrimSpace(fields.Get("label")))
	return c.answerAgents(w, r, views.Notice{Text: "The agent is now called " + agent.Label + "."}, err)
}

// RemoveAgent removes an agent; its secret is no longer valid.
func (c *Console) RemoveAgent(w http.ResponseWriter, r *http.Request) error {
	agent, _ := c.service.Agents.Find(web.PathParam(r, "id"))
	err := c.service.Agents.Remove(r.Context(), web.PathParam(r, "id"))
	return c.answerAgents(w, r, views.Notice{Text: agent.Label + " is removed."}, err)
}

// answerAgents answers a form of the table: with only the table if a script asked for it, otherwise with the page. If
// err is not nil, it says why nothing was done; otherwise done says what was done.
func (c *Console) answerAgents(w http.ResponseWriter, r *http.Request, done views.Notice, err error) error {
	switch {
	case err != nil:
		c.LogCause(r, err)
		done = views.Notice{Text: views.Sentence(domain.MessageOf(err)), Signal: views.SignalStop}
	case !wantsPart(r):
		var p views.AgentsProps
		c.arrange(r, &p)
		return c.notices.redirect(w, r, p.List.Address(), done)
	}
	return c.showAgents(w, r, view{once: true, status: web.StatusOf(err)}, views.AgentsPageProps{}, done)
}

// addressOf returns the gateway's address as known to the browser that sent a form: the request's Origin, which the
// guards have compared with its Host. The scheme of the request itself may be that of a proxy.
func addressOf(r *http.Request) *url.URL {
	if origin, err := url.Parse(r.Header.Get("Origin")); err == nil && origin.Host == r.Host {
		return &url.URL{Scheme: origin.Scheme, Host: origin.Host}
	}
	return web.Origin(r)
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.IsLoopback()
}
