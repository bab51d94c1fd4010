package service

import (
	"context"
	"net/url"
	"sync"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// callPlacer finds the stories to which the calls of a request belong.
type callPlacer struct {
	*Costs
	ctx   context.Context // of the request
	actor domain.Actor
	by    string
	now   time.Time
	links func() sessionLinks // read once, if a call needs them
	known map[domain.StoryKey]bool
	calls []domain.Call
	added int // how many calls were new
}

func (s *Costs) newCallPlacer(ctx context.Context) *callPlacer {
	actor := domain.ActorOf(ctx)
	return &callPlacer{
		Costs: s, ctx: ctx, actor: actor, by: s.claims.agents.nameOf(actor), now: clock.Now(),
		links: sync.OnceValue(s.sessions.links), known: map[domain.StoryKey]bool{},
	}
}

// noStory is the story of an agent's call for a project other than its own.
const noStory = "\x00"

// resolveNames replaces a record's project and story by existing ones, "" for unknown names.
func (p *callPlacer) resolveNames(c *domain.Call) error {
	exists := func(name string) (bool, error) {
		_, registered := p.pipelines.projects.Registry().Find(name)
		return registered, nil
	}
	name, err := decodeName(c.Project, exists)
	if err != nil {
		return err
	}
	if own := p.actor.Project; own != "" && name != own {
		if c.Project = own; name != "" {
			c.StoryID = noStory
			return nil
		}
		name = own
	}
	if c.Project = name; name == "" {
		c.StoryID = ""
		return nil
	}
	c.StoryID, err = decodeName(c.StoryID, func(id string) (bool, error) {
		return p.isStory(domain.StoryKey{Project: name, ID: id})
	})
	return err
}

// decodeName returns what a value names; one client sends it percent-encoded, as in its environment.
func decodeName(value string, exists func(string) (bool, error)) (string, error) {
	plain, _ := url.PathUnescape(value) // "" for a bad encoding, which names nothing
	for _, name := range []string{value, plain} {
		if found, err := exists(name); found || err != nil {
			return name, err
		}
	}
	return "", nil
}

// isStory reports whether a story exists, or may exist because its board has not been read.
func (p *callPlacer) isStory(story domain.StoryKey) (found bool, err error) {
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

// releaseGrace is how long calls still count for a story that was given up: clients go on for a moment.
const releaseGrace = 2 * time.Minute

// placeByClaim gives a call without a story the one of the actor's claims that it held at that time, or had just given
// up, or else the one that its session works on.
func (p *callPlacer) placeByClaim(c *domain.Call, claims []domain.ClaimPeriod) {
	if c.StoryID == noStory {
		c.StoryID = ""
		return
	}
	if c.Project == "" {
		c.Project = p.actor.Project
	}
	if c.StoryID != "" {
		return
	}
	var best domain.ClaimPeriod
	for _, claim := range claims {
		elsewhere := c.Project != "" && claim.Project != c.Project
		if elsewhere || claim.Since.After(c.At) || !lasted(claim, c.At) && c.At.Sub(claim.Ended) > releaseGrace {
			continue
		}
		if best.ID == "" || outranks(claim, best, c.At) {
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

func lasted(c domain.ClaimPeriod, at time.Time) bool { return c.Ended.IsZero() || c.Ended.After(at) }

// outranks reports whether a claim comes before another at a time: one held then before one that had ended; otherwise
// the one claimed, or given up, last. Of claims given up in the same millisecond, the one listed last comes first.
func outranks(claim, other domain.ClaimPeriod, at time.Time) bool {
	switch {
	case lasted(claim, at) != lasted(other, at):
		return lasted(claim, at)
	case lasted(claim, at):
		return claim.Since.After(other.Since)
	}
	return !claim.Ended.Before(other.Ended)
}
