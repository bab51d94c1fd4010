package service

import (
	"context"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// maxUnusedTokens is how many join tokens can be redeemable at a time. One more ends the oldest.
const maxUnusedTokens = 200

// tokenMemory is how long a token is kept after its expiry, so that its state can still be shown.
const tokenMemory = 7 * 24 * time.Hour

// CreateJoinToken issues a join token, valid once and for the configured time, and ends the oldest of over 200 unused
// ones. Its agent is assigned to project, "" for none, as soon as it joins. Only its hash is stored. It returns Invalid
// if the project does not exist.
func (s *Agents) CreateJoinToken(ctx context.Context, project string) (domain.Secret, domain.JoinToken, error) {
	if _, err := retry(ctx, func() (any, error) { return nil, s.checkProject(project) }, s.projects.reloader); err != nil {
		return "", domain.JoinToken{}, err
	}
	token := tokenPrefix + randomText(secretBytes)
	now := clock.Now()
	t := domain.JoinToken{Hash: hashSecret(token), CreatedAt: now, ExpiresAt: now.Add(s.joinTokenTTL), Project: project}
	change := domain.Change{
		Action: domain.JoinTokenCreated, Subject: shortHash(t.Hash),
		Detail: details("expires: "+exactTime(t.ExpiresAt), valueOf("project", project)),
	}
	err := s.audit.change(ctx, change, func(e *domain.AuditEntry) error {
		return s.store.AddToken(ctx, e, t, maxUnusedTokens)
	})
	if err != nil {
		return "", domain.JoinToken{}, err
	}
	return domain.Secret(token), t, nil
}

// UnusedJoinTokens returns the tokens that can still be redeemed, the first to expire first.
func (s *Agents) UnusedJoinTokens(ctx context.Context) ([]domain.JoinToken, error) {
	return s.store.UnusedTokens(ctx, clock.Now())
}

// JoinToken returns the state of an issued token. It returns NotFound for one that was revoked or never issued.
func (s *Agents) JoinToken(ctx context.Context, hash string) (domain.JoinToken, error) {
	t, err := s.store.Token(ctx, hash)
	return t, notFound(err, "this join token was revoked or never issued")
}

// RevokeJoinToken revokes an unused token. It returns NotFound if there is no unused one with that hash.
func (s *Agents) RevokeJoinToken(ctx context.Context, hash string) error {
	change := domain.Change{Action: domain.JoinTokenRevoked, Subject: shortHash(hash)}
	err := s.audit.change(ctx, change, func(e *domain.AuditEntry) error { return s.store.RevokeToken(ctx, e, hash) })
	return notFound(err, "this join token has already been used or revoked")
}
