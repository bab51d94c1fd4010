package service

import (
	"context"
	"slices"
	"strings"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// maxDevices is how many browsers of one account can get messages pushed.
const maxDevices = 20

// Push is the part of Targets for people who have messages pushed to their own browsers.
type Push struct{ targets *Targets }

// Key returns the gateway's public key, with which browsers subscribe.
func (p Push) Key(ctx context.Context) (string, error) {
	keys, err := p.targets.store.PushKeys(ctx)
	return keys.Public, err
}

// Devices returns the caller's browsers, ordered by name, and for administrators also those of others.
func (p Push) Devices(ctx context.Context) (own, others []domain.Target, err error) {
	all, err := p.targets.store.Targets(ctx)
	actor := domain.ActorOf(ctx)
	for _, t := range all {
		switch {
		case t.Owner == actor.Holder():
			own = append(own, t)
		case t.Owner != "" && actor.Role.Allows(domain.RoleAdmin):
			others = append(others, t)
		}
	}
	return own, others, err
}

// OwnerOf returns the name of the account whose device a target is.
func (p Push) OwnerOf(t domain.Target) string { return p.targets.access.nameOf(t.Owner) }

// Add has messages pushed to a browser of the caller, replacing any earlier subscription of that browser. It returns
// Invalid, and Conflict if there are too many.
func (p Push) Add(ctx context.Context, name string, d domain.PushDevice, rules domain.TargetRules) (
	domain.Target, error,
) {
	devices, _, err := p.Devices(ctx)
	if err != nil {
		return domain.Target{}, err
	}
	var before []domain.Target
	for _, t := range devices {
		if old, _ := domain.ParsePushAddress(t.URL); old.Endpoint == d.Endpoint {
			before = append(before, t)
		}
	}
	if len(devices)-len(before) >= maxDevices {
		return domain.Target{}, domain.Errorf(domain.Conflict, "you have %d devices already", len(devices))
	}
	rules.Digest, rules.DigestAt, rules.TimeZone = domain.NoDigest, "08:00", "UTC"
	t, err := p.targets.Add(ctx, domain.Target{
		Owner: domain.ActorOf(ctx).Holder(), Name: name, URL: d.Address(), Rules: rules, Enabled: true,
	})
	for i := 0; err == nil && i < len(before); i++ {
		err = p.targets.remove(ctx, before[i])
	}
	return t, err
}

// Remove stops pushing to one of the caller's browsers or, for an administrator, to any. It returns NotFound.
func (p Push) Remove(ctx context.Context, id string) error {
	own, others, err := p.Devices(ctx)
	if err != nil {
		return err
	}
	devices := slices.Concat(own, others)
	i := slices.IndexFunc(devices, func(t domain.Target) bool { return t.ID == id })
	if i < 0 {
		return targetNotFound()
	}
	return p.targets.remove(ctx, devices[i])
}

// MaySee reports whether an account may see what viewers see: its token is in force, or somebody is logged in as it. If
// not, again says whether the account may later.
func (a *Access) MaySee(account string) (may, again bool) {
	now := clock.Now()
	switch kind, id, _ := strings.Cut(account, " "); kind {
	case "token":
		return a.inForce(id, now), false
	case "agent":
		for _, t := range a.tokens.list() {
			may = may || t.AgentID == id && !t.Expired(now)
		}
		return may, false
	case "login":
		for _, s := range a.sessions.list() {
			may = may || s.Account == account && !a.isOver(s, now)
		}
		return may, true
	}
	return true, true
}

// nameOf returns the name by which people know an account, or the account itself if there is none.
func (a *Access) nameOf(account string) string {
	if id, isToken := strings.CutPrefix(account, "token "); isToken {
		if t, known := a.tokens.get(id); known {
			return t.Name
		}
	}
	for _, s := range a.sessions.list() {
		if s.Account == account {
			return s.Who
		}
	}
	return account
}
