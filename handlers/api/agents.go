package api

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
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

// CreateJoinToken issues a join token. The token is shown only in this answer.
func (a *API) CreateJoinToken(w http.ResponseWriter, r *http.Request) error {
	token, _, err := a.service.Agents.CreateJoinToken(r.Context())
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusOK, struct {
		Token string `json:"token"`
	}{token.Reveal()})
	return nil
}

// JoinAgent redeems a join token. The agent's secret is shown only in this answer.
func (a *API) JoinAgent(w http.ResponseWriter, r *http.Request) error {
	body, err := web.DecodeJSON(w, r, web.SmallBody)
	if err != nil {
		return err
	}
	token, err := body.Text("token")
	if err != nil {
		return err
	}
	label, err := body.OptionalText("label")
	if err != nil {
		return err
	}
	version, err := body.OptionalText("version")
	if err != nil {
		return err
	}
	if version == nil {
		version = new(string)
	}
	agent, secret, err := a.service.Agents.Join(r.Context(), domain.Secret(token), label, *version)
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusCreated, struct {
		Agent  agentJSON `json:"agent"`
		Secret string    `json:"secret"`
	}{encodeAgent(agent), secret.Reveal()})
	return nil
}

// Heartbeat stores what an agent reports and answers with its assignment; with wait, once the assignment changes.
func (a *API) Heartbeat(w http.ResponseWriter, r *http.Request) error {
	id := web.PathParam(r, "id")
	body, err := web.DecodeJSON(w, r, web.SmallBody)
	if err != nil {
		return err
	}
	beat, err := heartbeatFields(body)
	if err != nil {
		return err
	}
	query, err := web.ParseQuery(r)
	if err != nil {
		return err
	}
	if beat.Wait, err = query.Wait(); err != nil {
		return err
	}
	beat.Assigned = query.Get("assigned")
	ctx, cancel := web.LongPollContext(r)
	defer cancel()
	agent, err := a.service.Agents.Heartbeat(ctx, id, beat)
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusOK, encodeAgent(agent))
	return nil
}

// IssueAgentToken issues the token that an agent passes to its command. The token is shown only in this answer.
func (a *API) IssueAgentToken(w http.ResponseWriter, r *http.Request) error {
	token, secret, err := a.service.Agents.IssueToken(r.Context(), web.PathParam(r, "id"))
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusCreated, struct {
		Token   string `json:"token"`
		Project string `json:"project"`
	}{secret.Reveal(), token.Project})
	return nil
}

func heartbeatFields(b web.Body) (service.Heartbeat, error) {
	state, err := b.OptionalText("state")
	if err != nil {
		return service.Heartbeat{}, err
	}
	detail, err := b.OptionalText("detail")
	if err != nil {
		return service.Heartbeat{}, err
	}
	if state != nil && !domain.AgentState(*state).Valid() {
		return service.Heartbeat{}, domain.Errorf(domain.Invalid, "state: must be idle, running, failed or stopped")
	}
	return service.Heartbeat{State: (*domain.AgentState)(state), Detail: detail}, nil
}

// RemoveAgent removes an agent; its secret is no longer valid.
func (a *API) RemoveAgent(w http.ResponseWriter, r *http.Request) error {
	if err := a.service.Agents.Remove(r.Context(), web.PathParam(r, "id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// ListAgents lists the agents that are alive.
func (a *API) ListAgents(w http.ResponseWriter, r *http.Request) error {
	agents := []agentJSON{}
	for _, agent := range a.service.Agents.Alive() {
		agents = append(agents, encodeAgent(agent))
	}
	web.WriteJSON(w, http.StatusOK, agents)
	return nil
}

// AssignAgent assigns an agent to a project. Every failure except an unknown project is a 404 with one fixed text;
// the cause is logged.
func (a *API) AssignAgent(w http.ResponseWriter, r *http.Request) error {
	body, err := web.DecodeJSON(w, r, web.MaxBody)
	if err != nil {
		return err
	}
	project, err := body.OptionalText("project")
	if err != nil {
		return err
	}
	if project == nil {
		project = new(string)
	} else if *project == "" {
		return domain.Errorf(domain.Invalid, "project '' does not exist")
	}
	agent, err := a.service.Agents.Assign(r.Context(), web.PathParam(r, "id"), *project)
	switch code := domain.CodeOf(err); {
	case code == domain.Invalid, code == domain.Forbidden, code == domain.Unavailable:
		return err
	case err != nil:
		a.Log.WarnContext(r.Context(), "agent not assigned", "id", web.RequestID(r.Context()),
			"agent", web.PathParam(r, "id"), "error", err)
		return domain.WrapError(domain.NotFound, err, "agent not found")
	}
	web.WriteJSON(w, http.StatusOK, encodeAgent(agent))
	return nil
}
