package service

import (
	"cmp"
	"context"
	"maps"
	"slices"
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
	a.change.Lock()
	defer a.change.Unlock()
	change := domain.Change{Action: domain.TokenCreated, Subject: t.Name, Detail: tokenDetail(t)}
	ctx = context.WithoutCancel(ctx)
	err := a.audit.change(ctx, change, func(e *domain.AuditEntry) error { return a.store.AddNamedToken(ctx, e, t) })
	if err != nil {
		return domain.NamedToken{}, "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.AgentID != "" {
		a.dropTokens(func(old domain.NamedToken) bool { return old.AgentID == t.AgentID })
	}
	a.addToken(t)
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

// Token returns the identity of a named token and updates its last use. It returns nil when it is unknown, revoked or
// expired, or of a wall display.
func (a *Access) Token(ctx context.Context, secret domain.Secret) *Identity {
	if who := a.AnyToken(ctx, secret); who != nil && who.Role != domain.RoleWall {
		return who
	}
	return nil
}

// AnyToken is Token for the tokens of wall displays, too.
func (a *Access) AnyToken(ctx context.Context, secret domain.Secret) *Identity {
	if !strings.HasPrefix(secret.Reveal(), namedTokenPrefix) {
		return nil
	}
	hash := hashSecret(secret.Reveal())
	return a.find(ctx, func(now time.Time) *Identity {
		t := a.byHash[hash]
		if t == nil || t.Expired(now) {
			return nil
		}
		t.LastUsed, t.unsaved = now, true
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

// lastReports is how long the token of an agent's command still reports what was used: clients do so when they are
// stopped.
const lastReports = time.Minute

// endedToken is the token of an agent's command that has ended.
type endedToken struct {
	domain.NamedToken
	at time.Time
}

// EndedToken returns the identity of an agent's token that has ended less than lastReports ago, nil for any other.
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
	if a.endedTokens == nil {
		a.endedTokens = map[string]endedToken{}
	}
	a.endedTokens[t.Hash] = endedToken{t, time.Now()}
}

// Tokens returns the named tokens that have not been revoked, including expired ones, ordered by name.
func (a *Access) Tokens() []domain.NamedToken {
	a.mu.Lock()
	defer a.mu.Unlock()
	tokens := make([]domain.NamedToken, 0, len(a.tokens))
	for _, t := range a.tokens {
		tokens = append(tokens, t.NamedToken)
	}
	slices.SortFunc(tokens, func(x, y domain.NamedToken) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), x.CreatedAt.Compare(y.CreatedAt), cmp.Compare(x.ID, y.ID))
	})
	return tokens
}

// RevokeToken revokes a named token and ends its claims and the sessions that were made with it. It returns NotFound
// for an unknown token.
func (a *Access) RevokeToken(ctx context.Context, id string) error {
	_, err := retry(ctx, func() (any, error) {
		a.change.Lock()
		defer a.change.Unlock()
		a.mu.Lock()
		t := a.tokens[id]
		a.mu.Unlock()
		if t == nil {
			return nil, domain.Errorf(domain.NotFound, "there is no such token")
		}
		change := domain.Change{Action: domain.TokenRevoked, Subject: t.Name, Detail: tokenDetail(t.NamedToken)}
		ctx := context.WithoutCancel(ctx)
		err := a.end(ctx, change, func(e *domain.AuditEntry) error { return a.store.RemoveNamedToken(ctx, e, id) },
			func() {
				a.dropTokens(func(old domain.NamedToken) bool { return old.ID == id })
				delete(a.endedTokens, t.Hash)
			})
		if err == nil {
			a.claims.drop(func(c domain.Claim) bool { return c.Holder == domain.TokenHolder+id })
		}
		return nil, err
	}, a.stored)
	return err
}
