package handlers

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/service"
)

// agentJSON is an agent as the API shows it: its project and its address are null while it is unassigned.
type agentJSON struct {
	ID              string            `json:"id"`
	Label           string            `json:"label"`
	Version         string            `json:"version"`
	State           domain.AgentState `json:"state"`
	Detail          string            `json:"detail"`
	AssignedProject *string           `json:"assigned_project"`
	ProjectURL      *string           `json:"project_url"`
	JoinedAtMS      int64             `json:"joined_at_ms"`
	LastSeenMS      int64             `json:"last_seen_ms"`
}

func encodeAgent(a domain.Agent) agentJSON {
	encoded := agentJSON{
		ID: a.ID, Label: a.Label, Version: a.Version, State: a.State, Detail: a.Detail,
		JoinedAtMS: a.JoinedAt.UnixMilli(), LastSeenMS: a.LastSeen.UnixMilli(),
	}
	if a.Project != "" {
		encoded.AssignedProject, encoded.ProjectURL = &a.Project, &a.ProjectURL
	}
	return encoded
}

// createToken issues a join token. This answer is the only place where it shows.
func (g *gateway) createToken(w http.ResponseWriter, r *http.Request) error {
	token, _, err := g.Service.Agents.CreateJoinToken(r.Context())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, struct {
		Token string `json:"token"`
	}{token.Reveal()})
	return nil
}

func (g *gateway) joinAgent(w http.ResponseWriter, r *http.Request) error {
	body, err := decodeBody(w, r)
	if err != nil {
		return err
	}
	token, err := body.text("token")
	if err != nil {
		return err
	}
	label, err := body.optionalText("label")
	if err != nil {
		return err
	}
	version, err := body.optionalText("version")
	if err != nil {
		return err
	}
	if version == nil {
		version = new(string)
	}
	agent, secret, err := g.Service.Agents.Join(r.Context(), domain.Secret(token), label, *version)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, struct {
		Agent  agentJSON `json:"agent"`
		Secret string    `json:"secret"`
	}{encodeAgent(agent), secret.Reveal()})
	return nil
}

func (g *gateway) heartbeat(w http.ResponseWriter, r *http.Request) error {
	id := pathParam(r, "id")
	if err := g.Service.Agents.CheckSecret(id, agentSecret(r)); err != nil {
		return err
	}
	body, err := decodeBody(w, r)
	if err != nil {
		return err
	}
	beat, err := heartbeatFields(body)
	if err != nil {
		return err
	}
	query, err := parseQuery(r)
	if err != nil {
		return err
	}
	if beat.Wait, err = query.wait(); err != nil {
		return err
	}
	beat.Assigned = query.Get("assigned")
	ctx, cancel := longPollContext(r)
	defer cancel()
	agent, err := g.Service.Agents.Heartbeat(ctx, id, beat)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, encodeAgent(agent))
	return nil
}

func heartbeatFields(b body) (service.Heartbeat, error) {
	state, err := b.optionalText("state")
	if err != nil {
		return service.Heartbeat{}, err
	}
	detail, err := b.optionalText("detail")
	if err != nil {
		return service.Heartbeat{}, err
	}
	if state != nil && !domain.AgentState(*state).Valid() {
		return service.Heartbeat{}, domain.Errorf(domain.Invalid, "state: must be idle, running, failed or stopped")
	}
	return service.Heartbeat{State: (*domain.AgentState)(state), Detail: detail}, nil
}

// removeAgent ends an identity: the agent's own with its secret, any as the administrator. Who shows an agent's secret
// acts as that agent, also where everyone else is the administrator.
func (g *gateway) removeAgent(w http.ResponseWriter, r *http.Request) error {
	id, secret := pathParam(r, "id"), agentSecret(r)
	if err := g.Service.Agents.CheckSecret(id, secret); err != nil {
		_, known := g.Service.Agents.Find(id)
		asAgent := service.IsAgentSecret(secret) && proofOf(r) != tokenGiven
		if asAgent && known || !asAgent && !isAdministrator(r) {
			return err
		}
	}
	if err := g.Service.Agents.Remove(r.Context(), id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (g *gateway) listAgents(w http.ResponseWriter, r *http.Request) error {
	agents := []agentJSON{}
	for _, agent := range g.Service.Agents.Alive() {
		agents = append(agents, encodeAgent(agent))
	}
	writeJSON(w, http.StatusOK, agents)
	return nil
}

// assignAgent sends an agent to a project. Every failure but a project that does not exist is a 404 of one fixed text;
// the log has its cause.
func (g *gateway) assignAgent(w http.ResponseWriter, r *http.Request) error {
	body, err := decodeBody(w, r)
	if err != nil {
		return err
	}
	project, err := body.optionalText("project")
	if err != nil {
		return err
	}
	if project == nil {
		project = new(string)
	} else if *project == "" {
		return domain.Errorf(domain.Invalid, "project '' does not exist")
	}
	agent, err := g.Service.Agents.Assign(r.Context(), pathParam(r, "id"), *project)
	if domain.CodeOf(err) == domain.Invalid {
		return err
	}
	if err != nil {
		g.log.WarnContext(r.Context(), "agent not assigned", "id", requestID(r.Context()), "agent", pathParam(r, "id"), "error", err)
		return domain.WrapError(domain.NotFound, err, "agent not found")
	}
	writeJSON(w, http.StatusOK, encodeAgent(agent))
	return nil
}

// agentSecret returns what the caller shows as an agent's secret, "" when nothing.
func agentSecret(r *http.Request) domain.Secret {
	token, ok := bearerToken(r)
	if !ok {
		return ""
	}
	return domain.Secret(token)
}
