package service

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

const (
	// auditLife is how long audit entries are kept, repeatedLife those of changes that repeat.
	auditLife, repeatedLife = 400 * 24 * time.Hour, 30 * 24 * time.Hour
	// auditInterval is how often older entries are removed, at most auditStep in a transaction so that no writer waits for
	// long.
	auditInterval, auditStep = time.Hour, 500
)

// Audit records who changed what. Each method of this package that changes something calls change or changed exactly
// once, and only when the change was made.
type Audit struct {
	store *database
	log   *slog.Logger
}

// change makes a change in the store: write stores it and its audit entry in one transaction. Then apply makes it in
// memory. It returns Forbidden if the actor's token is for another project.
func (a *Audit) change(
	ctx context.Context, c domain.Change, write func(*domain.AuditEntry) error, apply ...func(),
) error {
	actor := domain.ActorOf(ctx)
	if err := actor.CheckScope(c.Project); err != nil {
		return err
	}
	e := domain.NewAuditEntry(clock.Now(), actor, c)
	if err := write(&e); err != nil {
		return err
	}
	if e.Times <= 1 {
		a.logEntry(ctx, e)
	}
	for _, apply := range apply {
		apply()
	}
	return nil
}

// changed records a change that was just made outside the store. The caller has checked that the actor may make it.
func (a *Audit) changed(ctx context.Context, c domain.Change) {
	e := domain.NewAuditEntry(clock.Now(), domain.ActorOf(ctx), c)
	if err := a.store.AddAudit(context.WithoutCancel(ctx), e); err != nil {
		a.log.ErrorContext(ctx, "cannot store the audit entry of a change", "error", err)
	}
	a.logEntry(ctx, e)
}

func (a *Audit) logEntry(ctx context.Context, e domain.AuditEntry) {
	a.log.InfoContext(ctx, "audit", "action", e.Action, "subject", e.Subject, "detail", e.Detail, "who", e.Who,
		"via", e.Via, "role", e.Role, "id", e.RequestID)
}

// Page returns a page of entries, newest first.
func (a *Audit) Page(ctx context.Context, q domain.AuditQuery) (domain.AuditPage, error) {
	page, err := a.store.AuditPage(ctx, q)
	for i, e := range page.Entries {
		if e.Times > 1 {
			page.Entries[i].Detail = details(e.Detail, strconv.Itoa(e.Times)+" times within a minute")
		}
	}
	return page, err
}

// recentChanges is how many of the newest entries Authors looks at.
const recentChanges = 2000

// Authors returns who made the newest changes, by name.
func (a *Audit) Authors(ctx context.Context) ([]string, error) {
	return a.store.AuditAuthors(ctx, recentChanges)
}

// Run removes expired entries until ctx ends. It returns an error when the store failed.
func (a *Audit) Run(ctx context.Context) error {
	for {
		for removed := int64(auditStep); removed == auditStep && ctx.Err() == nil; {
			var err error
			now := clock.Now()
			removed, err = a.store.RemoveAuditBefore(ctx, now.Add(-auditLife), now.Add(-repeatedLife), auditStep)
			if err != nil && ctx.Err() == nil {
				return err
			}
		}
		if !supervise.Sleep(ctx, auditInterval) {
			return nil
		}
	}
}

func details(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}

// changeOf formats a value before and after a change, "" if it is the same.
func changeOf(name, before, now string) string {
	if before == now {
		return ""
	}
	return name + ": " + orNone(before) + " → " + orNone(now)
}

func valueOf(name, value string) string {
	if value == "" {
		return ""
	}
	return name + ": " + value
}

// secretChange says that a secret has changed, without showing it.
func secretChange(name string, before, now domain.Secret) string {
	switch {
	case before == now:
		return ""
	case before == "":
		return name + ": set"
	case now == "":
		return name + ": removed"
	}
	return name + ": changed"
}

func exactTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func orNone(text string) string { return cmp.Or(text, "none") }
