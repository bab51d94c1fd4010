package handlers

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/views"
)

func (c *console) agents(w http.ResponseWriter, r *http.Request) error {
	return c.showAgents(w, r, views.AgentsProps{}, 0)
}

// showAgents shows the page, or its table if that was asked for; p says what is to stand there besides the agents.
func (c *console) showAgents(w http.ResponseWriter, r *http.Request, p views.AgentsProps, status int) error {
	var err error
	if p.Tokens, err = c.service.Agents.UnusedJoinTokens(r.Context()); err != nil {
		return err
	}
	p.Agents = c.service.Agents.All()
	p.Projects = c.service.Projects.Registry().Projects
	p.Now = time.Now()
	p.Version = c.agentsVersion(p)
	v := view{
		frame:   views.Frame{Title: "Agents", Page: views.PageAgents},
		version: p.Version,
		page:    views.Agents(p),
		part:    views.AgentsPart(p),
		status:  status,
	}
	if p.Join != nil || p.Said.Text != "" {
		v.version = "" // this is for one reader, once
	}
	return c.render(w, r, v)
}

// agentsVersion is that of the table. An agent with an open heartbeat is seen now, whenever that is.
func (c *console) agentsVersion(p views.AgentsProps) string {
	v := c.version()
	for _, a := range p.Agents {
		v.text(a.ID, a.Label, a.Version, string(a.State), a.Detail, string(a.Presence))
		v.text(assignedTo(a.Agent))
		v.flag(a.Connected)
		v.number(a.StateSince.UnixMilli())
		if !a.Connected {
			v.number(a.LastSeen.UnixMilli())
		}
	}
	v.number(int64(len(p.Agents)))
	for _, project := range p.Projects {
		v.text(project.Name)
	}
	v.number(int64(len(p.Projects)))
	for _, t := range p.Tokens {
		v.text(t.Hash)
	}
	return v.String()
}

// assignedTo is the name of the agent's project, "" for none.
func assignedTo(a domain.Agent) string {
	if a.Project == "" {
		return ""
	}
	return a.Project
}

// addAgent gives out a join token. The answer shows it, once; it is not behind an address of its own.
func (c *console) addAgent(w http.ResponseWriter, r *http.Request) error {
	secret, token, err := c.service.Agents.CreateJoinToken(r.Context())
	if err != nil {
		return err
	}
	address := addressOf(r)
	join := c.joinProps(token)
	join.Command = "switchyard agent --gateway " + address.String() + " --token " + secret.Reveal()
	join.Local = isLoopback(address.Hostname())
	return c.showAgents(w, r, views.AgentsProps{Join: &join}, 0)
}

// joinToken shows what became of a token that was given out: the page's part alone, or the page without the token.
func (c *console) joinToken(w http.ResponseWriter, r *http.Request) error {
	token, err := c.service.Agents.JoinToken(r.Context(), pathParam(r, "hash"))
	if err != nil {
		return err
	}
	join := c.joinProps(token)
	if !wantsPart(r) {
		return c.showAgents(w, r, views.AgentsProps{Join: &join}, 0)
	}
	return c.render(w, r, view{version: join.Version, part: views.JoinState(join)})
}

func (c *console) joinProps(token domain.JoinToken) views.JoinProps {
	p := views.JoinProps{Token: token, Now: time.Now()}
	p.Agent, _ = c.service.Agents.Find(token.UsedBy)
	v := c.version()
	v.text(token.Hash, p.Agent.Label)
	v.flag(!token.UsedAt.IsZero(), !p.Now.Before(token.ExpiresAt))
	p.Version = v.String()
	return p
}

func (c *console) revokeToken(w http.ResponseWriter, r *http.Request) error {
	err := c.service.Agents.RevokeJoinToken(r.Context(), pathParam(r, "hash"))
	return c.agentsSay(w, r, views.Notice{Text: "The join token is revoked."}, err)
}

func (c *console) assignAgent(w http.ResponseWriter, r *http.Request) error {
	fields, err := decodeForm(w, r)
	if err != nil {
		return err
	}
	id := pathParam(r, "id")
	before, _ := c.service.Agents.Find(id)
	agent, err := c.service.Agents.Assign(r.Context(), id, fields.Get("project"))
	was, is := assignedTo(before.Agent), assignedTo(agent)
	said := views.Notice{Text: agent.Label + " is unassigned."}
	if is != "" {
		said.Text = agent.Label + " is assigned to " + is + "."
	}
	if is != was {
		said.Undo = views.Undo{URL: views.AssignAgentURL(id), Name: "project", Value: was}
	}
	return c.agentsSay(w, r, said, err)
}

func (c *console) labelAgent(w http.ResponseWriter, r *http.Request) error {
	fields, err := decodeForm(w, r)
	if err != nil {
		return err
	}
	agent, err := c.service.Agents.SetLabel(r.Context(), pathParam(r, "id"), strings.TrimSpace(fields.Get("label")))
	return c.agentsSay(w, r, views.Notice{Text: "The agent is called " + agent.Label + "."}, err)
}

func (c *console) removeAgent(w http.ResponseWriter, r *http.Request) error {
	agent, _ := c.service.Agents.Find(pathParam(r, "id"))
	err := c.service.Agents.Remove(r.Context(), pathParam(r, "id"))
	return c.agentsSay(w, r, views.Notice{Text: agent.Label + " is removed."}, err)
}

// agentsSay answers a form of the table: with the table where scripts asked for it alone, else with the page. err is why
// nothing was done, nil when done is true.
func (c *console) agentsSay(w http.ResponseWriter, r *http.Request, done views.Notice, err error) error {
	switch {
	case err != nil:
		c.logCause(r, err)
		done = views.Notice{Text: sentence(domain.MessageOf(err)), Failed: true}
	case !wantsPart(r):
		return c.notices.redirect(w, r, views.AgentsURL, done)
	}
	return c.showAgents(w, r, views.AgentsProps{Said: done}, statuses[domain.CodeOf(err)])
}

// addressOf is the gateway's address as the browser that sent a form knows it: the form's origin, which the guards have
// compared with the host that it came to. Proxies may have changed the scheme on the way here.
func addressOf(r *http.Request) *url.URL {
	if origin, err := url.Parse(r.Header.Get("Origin")); err == nil && origin.Host == r.Host {
		return &url.URL{Scheme: origin.Scheme, Host: origin.Host}
	}
	scheme := "http"
	if cameByHTTPS(r) {
		scheme = "https"
	}
	return &url.URL{Scheme: scheme, Host: r.Host}
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.IsLoopback()
}
