package service

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// NewSecret gives a webhook another secret. It returns NotFound, and Invalid for a target without one.
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

// Resend sends the last messages of a target again, under other ids. It returns NotFound.
func (s *Targets) Resend(ctx context.Context, id string) error {
	t, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	change := domain.Change{Action: domain.TargetResent, Subject: t.Name, Detail: is("id", id)}
	err = s.audit.change(ctx, change, func(e *domain.AuditEntry) error {
		return s.store.ResendLast(ctx, e, id, newMessageID)
	})
	if domain.CodeOf(err) == domain.NotFound {
		return targetNotFound()
	}
	if err != nil {
		return err
	}
	return s.load(context.WithoutCancel(ctx))
}

func newMessageID() string { return "msg_" + strings.ToLower(rand.Text()) }

// Test sends a test message at once. It returns NotFound, and BadGateway with the reason when it was not accepted.
func (s *Targets) Test(ctx context.Context, id string) error {
	t, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	if err := domain.ActorOf(ctx).CheckScope(""); err != nil {
		return err
	}
	const text = "This is a test message of Switchyard."
	m := domain.Message{
		ID: newMessageID(), Type: "test", At: clock.Now(), Title: "Switchyard", Text: text, Link: s.link("/notifications"),
	}
	m.Data, _ = json.Marshal(map[string]string{"text": text, "link": m.Link})
	t.Progress.Parts = 0
	sent := s.messenger.Send(ctx, t, m)
	d := delivery(m, sent, 1, clock.Now())
	d.Message = nil // a test is not sent again
	if err := s.store.AddDelivery(context.WithoutCancel(ctx), id, d); err != nil {
		s.log.WarnContext(ctx, "cannot store a delivery", "error", err)
	}
	if sent.Err != nil {
		return domain.WrapError(domain.BadGateway, sent.Err, domain.MessageOf(sent.Err))
	}
	s.audit.changed(ctx, domain.Change{Action: domain.TargetTested, Subject: t.Name, Detail: is("id", id)})
	return nil
}

func delivery(m domain.Message, sent domain.Sent, attempt int, at time.Time) domain.Delivery {
	d := domain.Delivery{At: at, MessageID: m.ID, What: m.Title, Attempt: attempt, Status: sent.Status, Took: sent.Took}
	if sent.Err != nil {
		d.Error = domain.MessageOf(sent.Err)
	} else {
		d.Message = &m
	}
	return d
}
