package service

import (
	"cmp"
	"context"
	"crypto/subtle"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// Agents are the build agents and the join tokens with which they join.
type Agents struct {
	store        *database
	audit        *Audit
	projects     *Projects
	access       *Access
	claims       *claimTable
	table        *agentTable
	joinTokenTTL time.Duration
}

const (
	agentIDBytes = 10 // 80 random bits
	identityLife = 7 * 24 * time.Hour
	// forgetInterval is how often expired identities and tokens are removed, first that long after the start: agents that
	// were silent only because the gateway was down have called again by then (they retry every minute).
	forgetInterval = 2 * time.Minute
	// maxDetail is how many bytes of a heartbeat's detail are kept, from its end, which has the last lines of output.
	maxDetail = 4096
	// finalSave limits how long storing heartbeats may take at shutdown.
	finalSave = 5 * time.Second
)

func wrongSecret() error {
	return domain.Errorf(domain.Unauthorized, "no agent has this id and secret")
}

// Join redeems a join token and returns the new agent and its secret, of which only the hash is stored. Without a label
// the agent gets its id as label. It returns Invalid for a bad label or version, without using up the token, and
// Unauthorized, always with the same message, for a token that is unknown, used, revoked or expired.
func (s *Agents) Join(
	ctx context.Context, token domain.Secret, label *string, version string,
) (domain.Agent, domain.Secret, error) {
	secret := secretPrefix + randomText(secretBytes)
	seen := time.Now()
	now := clock.Of(seen)
	record := domain.AgentRecord{Agent: domain.Agent{
		ID: randomText(agentIDBytes), Version: version, State: domain.AgentIdle,
		JoinedAt: now, StateSince: now, LastSeen: now,
	}, SecretHash: hashSecret(secret)}
	record.Label = record.ID
	if label != nil {
		record.Label = *label
	}
	err := cmp.Or(domain.CheckAgentLabel(record.Label), domain.CheckAgentVersion(version))
	if err != nil {
		return domain.Agent{}, "", err
	}
	t, err := s.store.Token(ctx, hashSecret(token.Reveal()))
	if err == nil && s.checkProject(t.Project) != nil {
		_ = s.projects.reloader.refreshStale(ctx) // the project may be new; if it is unknown the agent is not assigned
	}
	s.projects.mu.RLock() // the project stays until the assignment is stored
	defer s.projects.mu.RUnlock()
	s.table.change.Lock()
	defer s.table.change.Unlock()
	if err == nil && s.checkProject(t.Project) == nil {
		record.Project = t.Project
	}
	self := domain.Actor{Who: record.Label, Via: domain.ViaAgent, RequestID: domain.ActorOf(ctx).RequestID}
	change := domain.Change{
		Action: domain.AgentJoined, Subject: record.Label,
		Detail: details(valueOf("id", record.ID), valueOf("version", version), valueOf("project", record.Project)),
	}
	ctx = domain.WithActor(context.WithoutCancel(ctx), &self)
	err = s.audit.change(ctx, change, func(e *domain.AuditEntry) error {
		return s.store.Redeem(ctx, e, hashSecret(token.Reveal()), record)
	})
	if err != nil {
		if domain.CodeOf(err) == domain.NotFound {
			err = domain.WrapError(domain.Unauthorized, err,
				"the join token is not valid: it is unknown, used, revoked or expired")
		}
		return domain.Agent{}, "", err
	}
	entry := newAgentEntry(record, seen, s.table.timeout)
	s.table.edit([]*agentEntry{entry})
	agent, _, _ := entry.view(s.projects.Registry())
	return agent, domain.Secret(secret), nil
}

// CheckSecret returns Unauthorized unless secret is that of the agent. If that requires the store and it cannot be
// reached, it returns Unavailable, so that agents do not give up their identities.
func (s *Agents) CheckSecret(ctx context.Context, id string, secret domain.Secret) error {
	entry, known := s.table.get(id)
	if !known && IsAgentSecret(secret) {
		if err := s.table.reloader.refreshStale(ctx); err != nil { // it may just have joined at another gateway
			return err
		}
		entry, known = s.table.get(id)
	}
	given := []byte(hashSecret(secret.Reveal()))
	if !known || subtle.ConstantTimeCompare(given, []byte(entry.record.SecretHash)) != 1 {
		return wrongSecret()
	}
	return nil
}

func (s *Agents) Find(id string) (agent domain.RegisteredAgent, found bool) {
	entry, found := s.table.get(id)
	if found {
		agent = entry.registered(s.projects.Registry())
	}
	return agent, found
}

// Alive returns the agents that are alive, ordered by label, then id.
func (s *Agents) Alive() []domain.Agent {
	var alive []domain.Agent
	for _, a := range s.All() {
		if a.Presence == domain.AgentAlive {
			alive = append(alive, a.Agent)
		}
	}
	return alive
}

// All returns every agent that has an identity, ordered by label, then id.
func (s *Agents) All() []domain.RegisteredAgent { return s.table.registered(s.projects.Registry()) }

// Assign assigns an agent, alive or not, to a project, "" for none. It returns Invalid when the project does not exist
// and NotFound when the agent does not.
func (s *Agents) Assign(ctx context.Context, id, project string) (domain.Agent, error) {
	return s.update(ctx, id, project, func(_ *agentEntry, before domain.Agent) error {
		return s.audit.change(ctx, domain.Change{
			Action: domain.AgentAssigned, Subject: before.Label,
			Detail: "id: " + id + "; project: " + orNone(before.Project) + " → " + orNone(project),
		}, func(entry *domain.AuditEntry) error { return s.store.AssignAgent(ctx, entry, id, project) }, func() {
			s.access.endAgentTokens(func(t domain.NamedToken) bool { return t.AgentID == id && t.Project != project })
			s.table.assign(project, id)
		})
	})
}

// SetLabel changes an agent's label. It returns Invalid for a bad label and NotFound when there is no such agent.
func (s *Agents) SetLabel(ctx context.Context, id, label string) (domain.Agent, error) {
	if err := domain.CheckAgentLabel(label); err != nil {
		return domain.Agent{}, err
	}
	return s.update(ctx, id, "", func(e *agentEntry, before domain.Agent) error {
		return s.audit.change(ctx, domain.Change{
			Action: domain.AgentLabelled, Subject: label, Detail: "id: " + id + "; label: " + before.Label + " → " + label,
		}, func(entry *domain.AuditEntry) error { return s.store.LabelAgent(ctx, entry, id, label) },
			func() { e.with(func() { e.record.Label = label }) })
	})
}

// Remove removes an agent: its open heartbeat and all later ones are refused. It returns NotFound when there is no such
// agent.
func (s *Agents) Remove(ctx context.Context, id string) error {
	_, err := s.update(ctx, id, "", func(_ *agentEntry, before domain.Agent) error {
		return s.audit.change(ctx, domain.Change{
			Action: domain.AgentRemoved, Subject: before.Label,
			Detail: details(valueOf("id", id), valueOf("it was assigned to", before.Project)),
		}, func(entry *domain.AuditEntry) error { return s.store.RemoveAgent(ctx, entry, id) }, func() {
			s.access.endAgentTokens(func(t domain.NamedToken) bool { return t.AgentID == id })
			s.table.edit(nil, id)
			s.claims.drop(func(c domain.Claim) bool { return c.AgentID == id })
		})
	})
	return err
}

// update changes an agent while no assignment or project can change. It returns Invalid for an unknown project,
// NotFound for an unknown agent, and the errors of change.
func (s *Agents) update(
	ctx context.Context, id, project string, change func(e *agentEntry, before domain.Agent) error,
) (domain.Agent, error) {
	return retry(ctx, func() (after domain.Agent, err error) {
		s.projects.mu.RLock()
		defer s.projects.mu.RUnlock()
		s.table.change.Lock()
		defer s.table.change.Unlock()
		if err := s.checkProject(project); err != nil {
			return after, err
		}
		entry, known := s.table.get(id)
		if !known {
			return after, domain.Errorf(domain.NotFound, "agent not found")
		}
		before, _, _ := entry.view(s.projects.Registry())
		if err := change(entry, before); err != nil {
			return after, err
		}
		after, _, _ = entry.view(s.projects.Registry())
		return after, nil
	}, s.projects.reloader, s.table.reloader)
}

// checkProject returns Invalid unless there is a project of that name or the name is "".
func (s *Agents) checkProject(name string) error {
	if _, found := s.projects.Registry().Find(name); name != "" && !found {
		return domain.Errorf(domain.Invalid, "project '%s' does not exist", name)
	}
	return nil
}

// IssueToken issues a token for an agent's command. It ends with the assignment, or when the next one is issued. It
// returns Conflict while the agent is not assigned, and Unauthorized when it has been removed. The caller has checked
// the agent's secret.
func (s *Agents) IssueToken(ctx context.Context, id string) (token domain.NamedToken, secret domain.Secret, err error) {
	_, err = s.update(ctx, id, "", func(_ *agentEntry, agent domain.Agent) (err error) {
		if agent.Project == "" {
			return domain.Errorf(domain.Conflict, "the agent is assigned to no project")
		}
		t := domain.NamedToken{Name: agent.Label, Role: domain.RoleViewer, Project: agent.Project, AgentID: id}
		if domain.CheckProjectName(t.Name) != nil { // not every label is a valid name
			t.Name = id
		}
		token, secret, err = s.access.CreateToken(ctx, t, nil)
		return err
	})
	if domain.CodeOf(err) == domain.NotFound {
		err = wrongSecret()
	}
	return token, secret, err
}
