package service

import (
	"cmp"
	"context"
	"net/url"
	"sync"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// placing says to which stories the calls of a request belong.
type placing struct {
	*Costs
	ctx   context.Context // of the request
	actor domain.Actor
	by    string
	now   time.Time
	links func() sessionLinks // read once, if a call needs them
	known map[domain.StoryKey]bool
	calls []domain.Call
	added int // how many of them were not stored already
}

func (s *Costs) newPlacing(ctx context.Context) *placing {
	actor := domain.ActorOf(ctx)
	return &placing{
		Costs: s, ctx: ctx, actor: actor, by: s.claims.agents.nameOf(actor), now: clock.Now(),
		links: sync.OnceValue(s.sessions.links), known: map[domain.StoryKey]bool{},
	}
}

// nowhere is the story of a call that an agent has made for another project than its own.
const nowhere = "\x00"

// named replaces the project and the story of a record by those that there are, "" for what names nothing.
func (p *placing) named(c *domain.Call) error {
	exists := func(name string) (bool, error) {
		_, registered := p.pipelines.projects.Registry().Find(name)
		return registered, nil
	}
	name, err := decoded(c.Project, exists)
	if err != nil {
		return err
	}
	if own := p.actor.Project; own != "" && name != own {
		if c.Project = own; name != "" {
			c.StoryID = nowhere
			return nil
		}
		name = own
	}
	if c.Project = name; name == "" {
		c.StoryID = ""
		return nil
	}
	c.StoryID, err = decoded(c.StoryID, func(id string) (bool, error) {
		return p.isStory(domain.StoryKey{Project: name, ID: id})
	})
	return err
}

// decoded returns what a value names, which one client sends as it is in its environment: percent-encoded.
func decoded(value string, exists func(string) (bool, error)) (string, error) {
	plain, _ := url.PathUnescape(value) // "" for what is not encoded so, which names nothing
	for _, name := range []string{value, plain} {
		if found, err := exists(name); found || err != nil {
			return name, err
		}
	}
	return "", nil
}

// isStory reports whether there is a story, or nobody knows: its board has not been read.
func (p *placing) isStory(story domain.StoryKey) (found bool, err error) {
	found, asked := p.known[story]
	if asked || story.ID == "" {
		return found, nil
	}
	item, _ := p.pipelines.Known(story.Project, story.ID)
	found = item != nil || len(p.pipelines.Stages(story.Project)) == 0
	if !found {
		_, err = p.store.StoryName(p.ctx, story.Project, story.ID)
		found = err == nil
	}
	if err != nil && domain.CodeOf(err) != domain.NotFound {
		return false, err
	}
	p.known[story] = found
	return found, nil
}

// gaveUp is for how long calls count for a story that was given up: clients go on for a moment.
const gaveUp = 2 * time.Minute

// held gives a call without a story the one of the actor's claims that it held at its time, or had given up just
// before, else the one that its session works on.
func (p *placing) held(c *domain.Call, claims []domain.HeldClaim) {
	if c.StoryID == nowhere {
		c.StoryID = ""
		return
	}
	if c.Project == "" {
		c.Project = p.actor.Project
	}
	if c.StoryID != "" {
		return
	}
	held := func(claim domain.HeldClaim) time.Time { // until the call, or its end before that
		if claim.Ended.IsZero() || claim.Ended.After(c.At) {
			return c.At
		}
		return claim.Ended
	}
	var best domain.HeldClaim
	for _, claim := range claims {
		elsewhere := c.Project != "" && claim.Project != c.Project
		if elsewhere || claim.Since.After(c.At) || c.At.Sub(held(claim)) > gaveUp {
			continue
		}
		if best.ID == "" || cmp.Or(held(claim).Compare(held(best)), claim.Since.Compare(best.Since)) > 0 {
			best = claim
		}
	}
	project, id := best.Project, best.ID
	if id == "" && c.Session != "" {
		project, id = p.sessions.storyOf(p.actor.Holder(), c.Session, p.links)
	}
	if project != "" && (c.Project == "" || c.Project == project) {
		c.Project, c.StoryID = project, id
	}
}
