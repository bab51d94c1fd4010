package api

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

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
	token, _, err := a.service.Agents.CreateJoinToken(r.Context(), "")
	return answer(w, http.StatusOK, map[string]any{"token": token.Reveal()}, err)
}

// JoinAgent redeems a join token. The agent's secret is shown only in this answer.
func (a *API) JoinAgent(w http.ResponseWriter, r *http.Request) error {
	body := web.DecodeJSON(w, r, web.SmallBody)
	token, label, version := body.Text("token"), body.OptionalText("label"), body.OptionalText("version")
	if err := body.Err(); err != nil {
		return err
	}
	agent, secret, err := a.service.Agents.Join(r.Context(), domain.Secret(token), label, wire.Text(version))
	return answer(w, http.StatusCreated, map[string]any{"agent": encodeAgent(agent), "secret": secret.Reveal()}, err)
}

// Heartbeat stores what an agent reports and answers with its assignment; with wait, once that changes.
func (a *API) Heartbeat(w http.ResponseWriter, r *http.Request) error {
	body := web.DecodeJSON(w, r, web.SmallBody)
	state, detail := (*domain.AgentState)(body.OptionalText("state")), body.OptionalText("detail")
	if err := body.Err(); err != nil {
		return err
	}
	if state != nil && !state.Valid() {
		return domain.Errorf(domain.Invalid, "state: must be idle, running, failed or stopped")
	}
	query := web.ParseQuery(r)
	beat := service.Heartbeat{State: state, Detail: detail, Wait: query.Wait(), Assigned: query.Get("assigned")}
	if err := query.Err(); err != nil {
		return err
	}
	ctx, cancel := web.LongPollContext(r)
	defer cancel()
	agent, err := a.service.Agents.Heartbeat(ctx, web.PathParam(r, "id"), beat)
	return answer(w, http.StatusOK, encodeAgent(agent), err)
}

// IssueAgentToken issues the token that an agent passes to its command. The token is shown only in this answer.
func (a *API) IssueAgentToken(w http.ResponseWriter, r *http.Request) error {
	token, secret, err := a.service.Agents.IssueToken(r.Context(), web.PathParam(r, "id"))
	return answer(w, http.StatusCreated, struct {
		Token   string `json:"token"`
		Project string `json:"project"`
	}{secret.Reveal(), token.Project}, err)
}

func (a *API) ListAgents(w http.ResponseWriter, r *http.Request) error {
	return answer(w, http.StatusOK, domain.Map(a.service.Agents.Alive(), encodeAgent), nil)
}

// AssignAgent assigns an agent to a project. Every failure except an unknown project is a 404 with one fixed text;
// the cause is logged.
func (a *API) AssignAgent(w http.ResponseWriter, r *http.Request) error {
	body := web.DecodeJSON(w, r, web.MaxBody)
	project := body.OptionalText("project")
	if err := body.Err(); err != nil {
		return err
	}
	if project != nil && *project == "" {
		return domain.Errorf(domain.Invalid, "project '' does not exist")
	}
	agent, err := a.service.Agents.Assign(r.Context(), web.PathParam(r, "id"), wire.Text(project))
	switch code := domain.CodeOf(err); {
	case code == domain.Invalid, code == domain.Forbidden, code == domain.Unavailable:
		return err
	case err != nil:
		a.Log.WarnContext(r.Context(), "agent not assigned", "id", web.RequestID(r.Context()),
			"agent", web.PathParam(r, "id"), "error", err)
		return domain.WrapError(domain.NotFound, err, "agent not found")
	}
	return answer(w, http.StatusOK, encodeAgent(agent), nil)
}

// ListAgentSessions lists the sessions of coding agents, those that wait for a person first.
func (a *API) ListAgentSessions(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, http.StatusOK, wire.NewAgentSessions(a.service.Sessions.List()), nil)
}
