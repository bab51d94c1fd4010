package service

import (
	"cmp"
	"context"
	"slices"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/keyed"
)

// claimTable holds the claims in memory; a transaction of the store decides who wins.
type claimTable struct {
	table[domain.StoryKey, domain.Claim]
	store  *database
	agents *agentTable    // claims show their labels
	free   *keyed.Waiters // for those waiting for a free story, by project, "" for any
}

func (t *claimTable) wake(before, _ []domain.Claim) {
	for _, c := range before {
		if _, claimed := t.get(c.Key()); !claimed {
			t.free.Wake(c.Project, "")
		}
	}
}

// labelled returns a claim with the current label of the agent that holds it.
func (t *claimTable) labelled(c domain.Claim) domain.Claim {
	if c.AgentID != "" {
		c.By = cmp.Or(t.agents.label(c.AgentID), c.By)
	}
	return c
}

// newClaim returns the claim that the actor of ctx would have on a story from now on.
func (t *claimTable) newClaim(ctx context.Context, project, id, stage string) domain.Claim {
	actor := domain.ActorOf(ctx)
	return domain.Claim{
		Project: project, StoryID: id, Stage: stage, Holder: actor.Holder(), By: t.agents.nameOf(actor),
		AgentID: actor.AgentID, Since: clock.Milli(),
	}
}

func (t *claimTable) all() map[domain.StoryKey]domain.Claim {
	claims := map[domain.StoryKey]domain.Claim{}
	for _, c := range t.list() {
		claims[c.Key()] = t.labelled(c)
	}
	return claims
}

// of returns the claim of a story in memory, nil if there is none.
func (t *claimTable) of(project, id string) *domain.Claim {
	c, claimed := t.get(domain.StoryKey{Project: project, ID: id})
	if !claimed {
		return nil
	}
	c = t.labelled(c)
	return &c
}

// lastOf returns the project and id of the story that a holder claimed last in a project, "" for any; "" for none.
func (t *claimTable) lastOf(holder, project string) (in, storyID string) {
	var last domain.Claim
	for _, c := range t.list() {
		if c.Holder == holder && (project == "" || c.Project == project) && c.Since.After(last.Since) {
			last = c
		}
	}
	return last.Project, last.StoryID
}

// latest returns the claims of each holder, newest first.
func (t *claimTable) latest() map[string][]domain.Claim {
	claims := map[string][]domain.Claim{}
	for _, c := range t.list() {
		claims[c.Holder] = append(claims[c.Holder], c)
	}
	for _, of := range claims {
		slices.SortFunc(of, func(a, b domain.Claim) int {
			return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(a.StoryID, b.StoryID))
		})
	}
	return claims
}

// now returns the claim of a story as all gateways know it, nil if there is none.
func (t *claimTable) now(ctx context.Context, project, id string) (*domain.Claim, error) {
	if t.reloader.changes == nil {
		return t.of(project, id), nil
	}
	c, err := t.store.Claim(ctx, project, id)
	if domain.CodeOf(err) == domain.NotFound {
		return nil, nil
	}
	c = t.labelled(c)
	return &c, err
}

// add stores the first of the claims whose story nobody has claimed, with its audit entry. It returns its index and the
// claim, or -1 and the claim of the first story. It returns NotFound if that has just ended, and if the agent or the
// project has been removed.
func (t *claimTable) add(
	ctx context.Context, e *domain.AuditEntry, wanted ...domain.Claim,
) (won int, held domain.Claim, err error) {
	err = t.write(ctx, func(ctx context.Context) ([]domain.Claim, []domain.StoryKey, error) {
		won, held, err = t.store.AddClaim(ctx, e, wanted...)
		if won >= 0 {
			held = wanted[won]
		}
		return []domain.Claim{held}, nil, err
	})
	if err != nil {
		return -1, held, err
	}
	return won, t.labelled(held), nil
}

// pass replaces a claim with another one, and stores changes of the story. It returns NotFound if the first has ended.
func (t *claimTable) pass(
	ctx context.Context, e *domain.AuditEntry, before, now domain.Claim, changes ...domain.StoryChange,
) error {
	return t.write(ctx, func(ctx context.Context) ([]domain.Claim, []domain.StoryKey, error) {
		return []domain.Claim{now}, nil, t.store.PassClaim(ctx, e, before, now, changes...)
	})
}

// undo ends a new claim, or returns it to its former holder. It returns NotFound if it has ended already.
func (t *claimTable) undo(ctx context.Context, won wonClaim) error {
	return t.replace(ctx, won.Claim, won.before, func(ctx context.Context) error {
		return t.store.UndoClaim(ctx, won.entry, won.Claim, won.before...)
	})
}

// replace is write for a claim that ends; store returns NotFound if it has ended already.
func (t *claimTable) replace(
	ctx context.Context, c domain.Claim, by []domain.Claim, store func(context.Context) error,
) error {
	return t.write(ctx, func(ctx context.Context) ([]domain.Claim, []domain.StoryKey, error) {
		err := store(ctx)
		if err == nil || domain.CodeOf(err) == domain.NotFound {
			t.forget(domain.Claim.Is, c)
		}
		return by, nil, err
	})
}

func (t *claimTable) record(
	ctx context.Context, e *domain.AuditEntry, changes []domain.StoryChange, ended ...domain.Claim,
) error {
	if len(ended) > 0 {
		t.change.Lock()
		defer t.change.Unlock()
	}
	err := t.store.RecordStoryChanges(context.WithoutCancel(ctx), e, changes, ended...)
	if err == nil {
		t.forget(domain.Claim.Is, ended...)
	}
	return err
}

type wonClaim struct {
	domain.Claim
	entry  domain.AuditEntry
	before []domain.Claim // the one taken over, if any
}
