package service

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

const (
	namedTokenPrefix = "swk_"
	tokenIDBytes     = 10
)

// CreateToken issues a named token with the name, role, project and agent of t, which ends after the given time or, if
// that is nil, never. Only its hash is stored. It returns Invalid for a bad name, role or duration.
func (a *Access) CreateToken(
	ctx context.Context, t domain.NamedToken, expiresIn *time.Duration,
) (domain.NamedToken, domain.Secret, error) {
	secret, now := namedTokenPrefix+randomText(secretBytes), clock.Now()
	t.ID, t.Hash, t.CreatedAt = randomText(tokenIDBytes), hashSecret(secret), now
	t.CreatedBy = domain.ActorOf(ctx).Who
	t.Name = strings.TrimSpace(t.Name)
	if err := cmp.Or(domain.CheckProjectName(t.Name), domain.CheckTokenRole(t.Role)); err != nil {
		return domain.NamedToken{}, "", err
	}
	if expiresIn != nil {
		if *expiresIn < time.Second {
			return domain.NamedToken{}, "", domain.Errorf(domain.Invalid,
				"expires_in: must be a duration of at least a second, such as 720h")
		}
		t.ExpiresAt = now.Add(*expiresIn)
	}
	change := domain.Change{Action: domain.TokenCreated, Subject: t.Name, Detail: tokenDetail(t)}
	err := a.tokens.write(ctx, func(ctx context.Context) ([]tokenEntry, []string, error) {
		last := a.tokens.keys(func(old tokenEntry) bool { return t.AgentID != "" && old.AgentID == t.AgentID })
		return []tokenEntry{{t, newHolder(time.Time{})}}, last, a.audit.change(ctx, change, func(e *domain.AuditEntry) error {
			return a.store.AddNamedToken(ctx, e, t)
		})
	})
	if err != nil {
		return domain.NamedToken{}, "", err
	}
	return t, domain.Secret(secret), nil
}

func tokenDetail(t domain.NamedToken) string {
	expires := "never"
	if !t.ExpiresAt.IsZero() {
		expires = exactTime(t.ExpiresAt)
	}
	return details(valueOf("id", t.ID), valueOf("role", string(t.Role)), valueOf("project", t.Project),
		valueOf("expires", expires))
}

// Token returns the identity of a named token and updates its last use. It returns nil if the token is unknown, revoked
// or expired, or belongs to a wall display.
func (a *Access) Token(ctx context.Context, secret domain.Secret) *Identity {
	if who := a.AnyToken(ctx, secret); who != nil && who.Role != domain.RoleWall {
		return who
	}
	return nil
}

// AnyToken is Token, but includes the tokens of wall displays.
func (a *Access) AnyToken(ctx context.Context, secret domain.Secret) *Identity {
	if !strings.HasPrefix(secret.Reveal(), namedTokenPrefix) {
		return nil
	}
	hash := hashSecret(secret.Reveal())
	return a.find(ctx, func(now time.Time) *Identity {
		t, known := a.byHash[hash]
		if !known || t.Expired(now) {
			return nil
		}
		t.used = now
		return &Identity{Actor: actorOfToken(t.NamedToken), TokenID: t.ID, Ended: t.ended}
	})
}

func actorOfToken(t domain.NamedToken) domain.Actor {
	actor := domain.Actor{
		Who: t.Name, Via: domain.ViaToken, Role: t.Role, Project: t.Project, Account: domain.TokenHolder + t.ID,
		AgentID: t.AgentID,
	}
	if t.AgentID != "" {
		actor.Who, actor.Account = "agent "+t.Name, "agent "+t.AgentID
	}
	return actor
}

// lastReports is how long the ended token of an agent's command may still report usage: clients do so when stopped.
const lastReports = time.Minute

// endedToken is the token of an agent's command that has ended.
type endedToken struct {
	domain.NamedToken
	at time.Time
}

// EndedToken returns the identity of an agent's token that ended less than lastReports ago, nil for any other.
func (a *Access) EndedToken(secret domain.Secret) *Identity {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ended := a.endedTokens[hashSecret(secret.Reveal())]
	if !ended || time.Since(t.at) > lastReports {
		return nil
	}
	return &Identity{Actor: actorOfToken(t.NamedToken), TokenID: t.ID}
}

// keepEnded keeps a token of an agent that has just ended. The caller holds mu.
func (a *Access) keepEnded(t domain.NamedToken) {
	maps.DeleteFunc(a.endedTokens, func(_ string, old endedToken) bool { return time.Since(old.at) > lastReports })
	a.endedTokens[t.Hash] = endedToken{t, time.Now()}
}

// Tokens returns the named tokens that have not been revoked, including expired ones, ordered by name.
func (a *Access) Tokens() []domain.NamedToken {
	a.mu.Lock()
	defer a.mu.Unlock()
	return domain.Map(a.tokens.list(), func(t tokenEntry) domain.NamedToken {
		t.LastUsed = t.used
		return t.NamedToken
	})
}

// RevokeToken revokes a named token and ends its claims and the sessions that were made with it. It returns NotFound
// for an unknown token.
func (a *Access) RevokeToken(ctx context.Context, id string) error {
	var hash string
	revoke := func(ctx context.Context) ([]tokenEntry, []string, error) {
		t, known := a.tokens.get(id)
		if !known {
			return nil, nil, domain.Errorf(domain.NotFound, "there is no such token")
		}
		hash = t.Hash
		change := domain.Change{Action: domain.TokenRevoked, Subject: t.Name, Detail: tokenDetail(t.NamedToken)}
		return nil, []string{id}, a.remove(ctx, change, func(e *domain.AuditEntry) error {
			return a.store.RemoveNamedToken(ctx, e, id)
		})
	}
	_, err := retry(ctx, func() (any, error) { return nil, a.tokens.write(ctx, revoke) }, a.reloader)
	if err != nil {
		return err
	}
	a.mu.Lock()
	delete(a.endedTokens, hash)
	a.mu.Unlock()
	a.claims.drop(func(c domain.Claim) bool { return c.Holder == domain.TokenHolder+id })
	return nil
}
