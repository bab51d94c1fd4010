package service

import (
	"cmp"
	"context"
	"crypto/rand"
	"strings"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// NewSecret gives a webhook a new secret. It returns NotFound, and Invalid for a target without one.
func (s *Targets) NewSecret(ctx context.Context, id string) (secret domain.Secret, err error) {
	t, err := s.Get(ctx, id)
	if err != nil {
		return "", err
	}
	if t.Secret == "" {
		return "", domain.Errorf(domain.Invalid, "only webhooks have a secret")
	}
	secret = newWebhookSecret()
	_, err = s.change(ctx, id, domain.TargetSecretChanged, func(t *domain.Target) string {
		t.Former, t.Secret, t.FormerUntil = t.Secret, secret, clock.Now().Add(formerLife)
		return "the former secret signs beside it until " + exactTime(t.FormerUntil)
	})
	return secret, err
}

// Resend sends the last messages of a target again, with new ids. It returns NotFound.
func (s *Targets) Resend(ctx context.Context, id string) error {
	t, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	change := domain.Change{Action: domain.TargetResent, Subject: t.Name, Detail: valueOf("id", id)}
	return s.reload(ctx, s.audit.change(ctx, change, func(e *domain.AuditEntry) error {
		return s.store.ResendLast(ctx, e, id, newMessageID)
	}))
}

func newMessageID() string { return "msg_" + strings.ToLower(rand.Text()) }

// Test sends a test message at once. It returns NotFound, and BadGateway with the reason if it is not accepted.
func (s *Targets) Test(ctx context.Context, id string) error {
	t, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	m, sent, err := s.test(ctx, t)
	if m.ID != "" {
		d := delivery(m, sent, 1, clock.Now())
		d.Message = nil // a test is not sent again
		if err := s.store.AddDelivery(context.WithoutCancel(ctx), id, d); err != nil {
			s.log.WarnContext(ctx, "cannot store a delivery", "error", err)
		}
	}
	return err
}

// TestFirst sends a test message to a target that is not stored yet, with a secret of its own if it signs. It returns
// Invalid for an address that is no target's, and BadGateway with the reason if the message is not accepted.
func (s *Targets) TestFirst(ctx context.Context, t domain.Target) (domain.SendResult, error) {
	signs, err := s.messenger.Check(ctx, t.URL)
	if err := cmp.Or(err, domain.CheckTargetName(t.Name)); err != nil {
		return domain.SendResult{}, err
	}
	if signs {
		t.Secret = newWebhookSecret()
	}
	_, sent, err := s.test(ctx, t)
	return sent, err
}

func (s *Targets) test(ctx context.Context, t domain.Target) (m domain.Message, sent domain.SendResult, err error) {
	if err := domain.ActorOf(ctx).CheckScope(""); err != nil {
		return m, sent, err
	}
	const text, path = "This is a test message of Switchyard.", "/notifications"
	m = domain.Message{
		ID: newMessageID(), Type: "test", At: clock.Now(), Title: "Switchyard", Text: text, Link: s.link(path),
		Data: webhookData(text, s.link(path), path, map[string]int{}),
	}
	t.Progress.Parts = 0
	if sent = s.messenger.Send(ctx, t, m); sent.Err != nil {
		return m, sent, domain.WrapError(domain.BadGateway, sent.Err, domain.MessageOf(sent.Err))
	}
	detail := details(valueOf("id", t.ID), valueOf("url", s.Shown(t.URL)))
	s.audit.changed(ctx, domain.Change{Action: domain.TargetTested, Subject: t.Name, Detail: detail})
	return m, sent, nil
}

func delivery(m domain.Message, sent domain.SendResult, attempt int, at time.Time) domain.Delivery {
	d := domain.Delivery{At: at, MessageID: m.ID, What: m.Title, Attempt: attempt, Status: sent.Status, Took: sent.Took}
	if sent.Err != nil {
		d.Error = domain.MessageOf(sent.Err)
	} else {
		d.Message = &m
	}
	return d
}
