package service

import (
	"context"

	"switchyard/internal/domain"
)

// IssueToken issues a token for an agent's command, of role operator and limited to the project that the agent is assigned to.
// It ends with that assignment, or when the next one is issued. It returns Conflict while the agent is not assigned, and
// Unauthorized when it has been removed. The caller has checked the agent's secret.
func (s *Agents) IssueToken(ctx context.Context, id string) (token domain.NamedToken, secret domain.Secret, err error) {
	err = s.change(ctx, func() (err error) {
		token, secret, err = s.issueToken(ctx, id)
		return err
	})
	return token, secret, err
}

func (s *Agents) issueToken(ctx context.Context, id string) (domain.NamedToken, domain.Secret, error) {
	s.projects.mu.RLock() // project and assignment stay until the token is stored
	defer s.projects.mu.RUnlock()
	s.table.change.Lock()
	defer s.table.change.Unlock()
	entry := s.table.find(id)
	if entry == nil {
		return domain.NamedToken{}, "", wrongSecret()
	}
	agent := s.table.view(entry, s.projects.Registry())
	if agent.Project == "" {
		return domain.NamedToken{}, "", domain.Errorf(domain.Conflict, "the agent is assigned to no project")
	}
	name := agent.Label
	if domain.CheckTokenName(name) != nil { // not every label is a valid name
		name = id
	}
	return s.access.CreateToken(ctx, NewToken{Name: name, Role: domain.RoleOperator, Project: agent.Project, AgentID: id})
}

// endAgentTokens ends tokens of agents' commands in memory. The store has ended them already.
func (a *Access) endAgentTokens(ended func(domain.NamedToken) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dropTokens(func(t domain.NamedToken) bool { return t.AgentID != "" && ended(t) })
}
