package service

import (
	"context"
	"crypto/subtle"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

type agentStore interface {
	AddToken(ctx context.Context, t domain.JoinToken) error
	Token(ctx context.Context, hash string) (domain.JoinToken, error)
	UnusedTokens(ctx context.Context, now time.Time) ([]domain.JoinToken, error)
	RevokeToken(ctx context.Context, hash string) error
	ForgetTokens(ctx context.Context, before time.Time) error
	Redeem(ctx context.Context, tokenHash string, agent domain.AgentRecord) error

	AgentRecords(ctx context.Context) ([]domain.AgentRecord, error)
	SaveBeats(ctx context.Context, beats []domain.AgentBeat) error
	AssignAgent(ctx context.Context, id, project string) error
	LabelAgent(ctx context.Context, id, label string) error
	RemoveAgent(ctx context.Context, id string) error
}

// Agents are the build agents and the join tokens with which they join.
type Agents struct {
	store        agentStore
	audit        *Audit
	projects     *Projects
	access       *Access
	table        *agentTable
	joinTokenTTL time.Duration
}

const (
	agentIDBytes = 10 // 80 random bits, enough for unique ids
	// identityLife is how long a silent agent keeps its identity.
	identityLife = 7 * 24 * time.Hour
	// forgetInterval is how often expired identities and tokens are removed, first that long after the start: agents that were
	// silent only because the gateway was down have called again by then (they retry every minute).
	forgetInterval = 2 * time.Minute
	// maxDetail is how many bytes of a heartbeat's detail are kept, those at its end, which has the last lines of output.
	maxDetail = 4096
	// finalSave is the time limit for storing heartbeats when the gateway stops.
	finalSave = 5 * time.Second
)

// agentNotFound returns the error for an unknown id.
func agentNotFound() error { return domain.Errorf(domain.NotFound, "agent not found") }

// wrongSecret returns the error for an unknown or removed agent, and for a wrong secret.
func wrongSecret() error {
	return domain.Errorf(domain.Unauthorized, "no agent has this id and secret")
}

// Join redeems a join token and returns the new agent and its secret, of which only the hash is stored. Without a label the agent
// gets its id as label. It returns Invalid for a bad label or version, without using up the token, and Unauthorized, always with
// the same message, for a token that is unknown, used, revoked or expired.
func (s *Agents) Join(ctx context.Context, token domain.Secret, label *string, version string) (domain.Agent, domain.Secret, error) {
	secret := secretPrefix + randomText(secretBytes)
	seen := time.Now()
	now := clock.Of(seen)
	record := domain.AgentRecord{
		ID: randomText(agentIDBytes), Version: version, SecretHash: hashSecret(secret), State: domain.AgentIdle,
		JoinedAt: now, StateSince: now, LastSeen: now,
	}
	record.Label = record.ID
	if label != nil {
		record.Label = *label
	}
	if err := domain.CheckAgentLabel(record.Label); err != nil {
		return domain.Agent{}, "", err
	}
	if err := domain.CheckAgentVersion(version); err != nil {
		return domain.Agent{}, "", err
	}
	t, err := s.store.Token(ctx, hashSecret(token.Reveal()))
	if err == nil && s.checkProject(t.Project) != nil {
		_ = s.projects.stored.refreshStale(ctx) // the project may be new; if it is unknown the agent is not assigned
	}
	s.projects.mu.RLock() // the project stays until the assignment is stored
	defer s.projects.mu.RUnlock()
	s.table.change.Lock()
	defer s.table.change.Unlock()
	if err == nil && s.checkProject(t.Project) == nil {
		record.Project = t.Project
	}
	self := domain.Actor{Who: record.Label, Via: domain.ViaAgent, RequestID: domain.ActorOf(ctx).RequestID}
	change := domain.Change{Action: domain.AgentJoined, Subject: record.Label, Detail: details(is("id", record.ID), is("version", version), is("project", record.Project))}
	err = s.audit.change(domain.WithActor(context.WithoutCancel(ctx), &self), change, func(ctx context.Context) error {
		return s.store.Redeem(ctx, hashSecret(token.Reveal()), record)
	})
	if err != nil {
		if domain.CodeOf(err) == domain.NotFound {
			err = domain.WrapError(domain.Unauthorized, err, "the join token is not valid: it is unknown, used, revoked or expired")
		}
		return domain.Agent{}, "", err
	}
	entry := s.table.add(record, seen)
	return s.table.view(entry, s.projects.Registry()), domain.Secret(secret), nil
}

// CheckSecret returns Unauthorized unless secret is that of the agent. If that requires the store and it cannot be reached, it
// returns Unavailable, so that agents do not give up their identities.
func (s *Agents) CheckSecret(ctx context.Context, id string, secret domain.Secret) error {
	if s.table.find(id) == nil && IsAgentSecret(secret) {
		if err := s.table.stored.refreshStale(ctx); err != nil { // it may just have joined at another gateway
			return err
		}
	}
	if subtle.ConstantTimeCompare([]byte(hashSecret(secret.Reveal())), []byte(s.table.secretHash(id))) == 1 {
		return nil
	}
	return wrongSecret()
}

// Find returns the agent with that id, false when there is none.
func (s *Agents) Find(id string) (domain.KnownAgent, bool) {
	return s.table.known(id, s.projects.Registry())
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
func (s *Agents) All() []domain.KnownAgent { return s.table.list(s.projects.Registry()) }

// Assign assigns an agent, alive or not, to a project, "" for none. It returns Invalid when the project does not exist and
// NotFound when the agent does not.
func (s *Agents) Assign(ctx context.Context, id, project string) (agent domain.Agent, err error) {
	err = s.change(ctx, func() (err error) {
		agent, err = s.assign(ctx, id, project)
		return err
	})
	return agent, err
}

// change changes an agent.
func (s *Agents) change(ctx context.Context, change func() error) error {
	return retry(ctx, change, s.projects.stored, s.table.stored)
}

func (s *Agents) assign(ctx context.Context, id, project string) (domain.Agent, error) {
	s.projects.mu.RLock() // the project stays until the assignment is stored
	defer s.projects.mu.RUnlock()
	s.table.change.Lock()
	defer s.table.change.Unlock()
	if err := s.checkProject(project); err != nil {
		return domain.Agent{}, err
	}
	entry := s.table.find(id)
	if entry == nil {
		return domain.Agent{}, agentNotFound()
	}
	before := s.table.view(entry, s.projects.Registry())
	change := domain.Change{
		Action: domain.AgentAssigned, Subject: before.Label, Detail: "id: " + id + "; project: " + orNone(before.Project) + " → " + orNone(project),
	}
	err := s.audit.change(ctx, change, func(ctx context.Context) error { return s.store.AssignAgent(ctx, id, project) })
	if err != nil {
		return domain.Agent{}, err
	}
	s.access.endAgentTokens(func(t domain.NamedToken) bool { return t.AgentID == id && t.Project != project })
	s.table.assign(entry, project)
	return s.table.view(entry, s.projects.Registry()), nil
}

// checkProject returns Invalid unless there is a project of that name or the name is "".
func (s *Agents) checkProject(name string) error {
	if _, found := s.projects.Registry().Find(name); name != "" && !found {
		return domain.Errorf(domain.Invalid, "project '%s' does not exist", name)
	}
	return nil
}

// SetLabel changes an agent's label. It returns Invalid for a bad label and NotFound when there is no such agent.
func (s *Agents) SetLabel(ctx context.Context, id, label string) (domain.Agent, error) {
	if err := domain.CheckAgentLabel(label); err != nil {
		return domain.Agent{}, err
	}
	var agent domain.Agent
	err := s.change(ctx, func() (err error) {
		agent, err = s.setLabel(ctx, id, label)
		return err
	})
	return agent, err
}

func (s *Agents) setLabel(ctx context.Context, id, label string) (domain.Agent, error) {
	s.table.change.Lock()
	defer s.table.change.Unlock()
	entry := s.table.find(id)
	if entry == nil {
		return domain.Agent{}, agentNotFound()
	}
	before := s.table.view(entry, s.projects.Registry())
	change := domain.Change{Action: domain.AgentLabelled, Subject: label, Detail: "id: " + id + "; label: " + before.Label + " → " + label}
	err := s.audit.change(ctx, change, func(ctx context.Context) error { return s.store.LabelAgent(ctx, id, label) })
	if err != nil {
		return domain.Agent{}, err
	}
	s.table.label(entry, label)
	return s.table.view(entry, s.projects.Registry()), nil
}

// Remove removes an agent: its open heartbeat and all later ones are refused. It returns NotFound when there is no such agent.
func (s *Agents) Remove(ctx context.Context, id string) error {
	return s.change(ctx, func() error { return s.remove(ctx, id) })
}

func (s *Agents) remove(ctx context.Context, id string) error {
	s.table.change.Lock()
	defer s.table.change.Unlock()
	entry := s.table.find(id)
	if entry == nil {
		return agentNotFound()
	}
	before := s.table.view(entry, s.projects.Registry())
	change := domain.Change{Action: domain.AgentRemoved, Subject: before.Label, Detail: details(is("id", id), is("it was assigned to", before.Project))}
	err := s.audit.change(ctx, change, func(ctx context.Context) error { return s.store.RemoveAgent(ctx, id) })
	if err != nil {
		return err
	}
	s.access.endAgentTokens(func(t domain.NamedToken) bool { return t.AgentID == id })
	s.table.remove(id)
	return nil
}
