package service

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"log/slog"
	"slices"
	"strings"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

type Targets struct {
	store     *database
	audit     *Audit
	log       *slog.Logger
	events    *Events
	alerts    *Alerts
	pipelines *Pipelines
	flow      *Flow
	costs     *Costs
	access    *Access
	leader    domain.Leadership
	messenger Messenger
	publicURL string        // "" for messages without links
	keep      time.Duration // digests, 0: forever
	table     table[string, domain.Target]
}

// List returns the administrators' targets, ordered by name.
func (s *Targets) List(ctx context.Context) ([]domain.Target, error) {
	all, err := s.store.Targets(ctx)
	return slices.DeleteFunc(all, func(t domain.Target) bool { return t.Owner != "" }), err
}

// Get returns an administrators' target. It returns NotFound.
func (s *Targets) Get(ctx context.Context, id string) (domain.Target, error) {
	t, err := s.store.Target(ctx, id)
	if domain.CodeOf(err) == domain.NotFound || err == nil && t.Owner != "" {
		return domain.Target{}, targetNotFound()
	}
	return t, err
}

func targetNotFound() error { return domain.Errorf(domain.NotFound, "there is no such target") }

func (s *Targets) Shown(address domain.Secret) string { return s.messenger.Shown(address) }

// Add stores a target with the owner, name, address, rules and state of t, starting at the present, and returns it with
// its secret. It returns Invalid, and Conflict if there are too many.
func (s *Targets) Add(ctx context.Context, t domain.Target) (domain.Target, error) {
	t.Name = strings.TrimSpace(t.Name)
	if _, device := domain.ParsePushAddress(t.URL); device && t.Owner == "" {
		return t, domain.Errorf(domain.Invalid, "url: people add their own browsers on the page Notifications")
	}
	signs, err := s.messenger.Check(ctx, t.URL)
	if err := cmp.Or(err, domain.CheckTargetName(t.Name), t.Rules.Check()); err != nil {
		return t, err
	}
	if t.ID = newTargetID(); signs {
		t.Secret = newWebhookSecret()
	}
	t.CreatedAt = clock.Milli()
	t.Progress = domain.TargetProgress{
		Position: s.events.LastID(), AlertsFrom: t.CreatedAt, DigestedAt: t.CreatedAt,
	}
	change := domain.Change{Action: domain.TargetCreated, Subject: t.Name, Detail: s.detail(t)}
	return t, s.reload(ctx, s.audit.change(ctx, change, func(e *domain.AuditEntry) error {
		return s.store.AddTarget(ctx, e, t)
	}))
}

// reload reads the targets again after a change in the store, unless that failed. It returns NotFound.
func (s *Targets) reload(ctx context.Context, err error) error {
	switch {
	case domain.CodeOf(err) == domain.NotFound:
		return targetNotFound()
	case err != nil:
		return err
	}
	return s.table.load(context.WithoutCancel(ctx))
}

func newTargetID() string { return strings.ToLower(rand.Text()[:12]) }

func newWebhookSecret() domain.Secret {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return domain.Secret("whsec_" + base64.StdEncoding.EncodeToString(key))
}

// Change changes the name, rules and state of an administrators' target and, unless it is "" or as List shows it, its
// address; a webhook with a new address gets a new secret, which is returned, otherwise "". It returns Invalid and
// NotFound.
func (s *Targets) Change(ctx context.Context, id string, now domain.Target) (
	t domain.Target, secret domain.Secret, err error,
) {
	now.Name = strings.TrimSpace(now.Name)
	if err := cmp.Or(domain.CheckTargetName(now.Name), now.Rules.Check()); err != nil {
		return t, "", err
	}
	signs := false
	before, err := s.Get(ctx, id)
	if err != nil {
		return t, "", err
	}
	keep := now.URL == "" || now.URL == before.URL || now.URL.Reveal() == s.Shown(before.URL)
	if !keep {
		if signs, err = s.messenger.Check(ctx, now.URL); err != nil {
			return t, "", err
		}
	}
	t, err = s.change(ctx, id, domain.TargetChanged, func(t *domain.Target) string {
		old := *t
		t.Name, t.Rules, t.Enabled = now.Name, now.Rules, now.Enabled
		if !keep {
			t.URL, t.Secret, t.Former = now.URL, "", ""
			if signs {
				secret = newWebhookSecret()
				t.Secret = secret
			}
		}
		return details(changeOf("name", old.Name, t.Name), changeOf("url", s.Shown(old.URL), s.Shown(t.URL)),
			secretChange("address", old.URL, t.URL), changeOf("rules", ruleText(old), ruleText(*t)))
	})
	return t, secret, err
}

// change changes a target; edit returns what is new, without secrets. It returns NotFound.
func (s *Targets) change(
	ctx context.Context, id string, action domain.Action, edit func(t *domain.Target) (detail string),
) (t domain.Target, err error) {
	c := domain.Change{Action: action}
	err = s.audit.change(ctx, c, func(e *domain.AuditEntry) (err error) {
		t, err = s.store.ChangeTarget(ctx, id, func(t *domain.Target) (*domain.AuditEntry, error) {
			e.Detail = domain.CutText(edit(t))
			e.Subject = domain.CutText(t.Name)
			return e, nil
		})
		return err
	})
	return t, s.reload(ctx, err)
}

func (s *Targets) detail(t domain.Target) string {
	return details(valueOf("id", t.ID), valueOf("url", s.Shown(t.URL)), valueOf("rules", ruleText(t)))
}

// Remove removes an administrators' target. It returns NotFound.
func (s *Targets) Remove(ctx context.Context, id string) error {
	t, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	return s.remove(ctx, t)
}

func (s *Targets) remove(ctx context.Context, t domain.Target) error {
	change := domain.Change{Action: domain.TargetRemoved, Subject: t.Name, Detail: s.detail(t)}
	return s.reload(ctx, s.audit.change(ctx, change, func(e *domain.AuditEntry) error {
		return s.store.RemoveTarget(ctx, e, t.ID)
	}))
}

// formerLife is how long a webhook's former secret still signs alongside the new one.
const formerLife = 24 * time.Hour

// Run sends messages while this gateway leads, until ctx ends.
func (s *Targets) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		moved := s.leader.Changed()
		token, leads := s.leader.Token()
		if !leads {
			select {
			case <-moved:
			case <-ctx.Done():
			}
			continue
		}
		life, end := context.WithCancel(ctx)
		supervise.Go(s.log, "lead", func() {
			select {
			case <-moved:
				end()
			case <-life.Done():
			}
		})
		err := supervise.UnlessEnded(life, unlessLost(deliver(life, s, token)))
		end()
		if err != nil {
			return err
		}
	}
	return nil
}

// maxLink is the longest link that is sent, in bytes: services have limits, the lowest being 512.
const maxLink = 500

// link returns the address of the first of these pages that is short enough, "" if there is none or the gateway's own
// is unknown.
func (s *Targets) link(paths ...string) string {
	for _, path := range paths {
		if s.publicURL != "" && len(s.publicURL)+len(path) <= maxLink {
			return s.publicURL + path
		}
	}
	return ""
}

func (s *Targets) failing() (found []domain.Alert) {
	now := clock.Now()
	for _, t := range s.table.list() {
		p := t.Progress
		a := domain.Alert{Kind: domain.AlertTarget, Target: t.ID, Agent: t.Name, Since: p.FailingAt}
		switch {
		case t.Owner != "":
			continue
		case p.Gone && !t.Enabled:
			a.Reason = "the receiver wants no more of them (410)"
		case !t.Enabled || p.FailingAt.IsZero() || now.Sub(p.FailingAt) < domain.FailingFor:
			continue
		}
		found = append(found, a)
	}
	return found
}
