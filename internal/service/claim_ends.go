package service

import (
	"cmp"
	"context"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// Release ends the claim of a story, if there is one. It returns NotFound for an unknown project, and Forbidden for
// somebody else's claim unless the actor is an operator.
func (s *Claims) Release(ctx context.Context, project, id string) error {
	if _, err := s.stories.mayChange(ctx, project); err != nil {
		return err
	}
	c, err := s.table.now(ctx, project, id)
	if err != nil || c == nil {
		return err
	}
	actor := domain.ActorOf(ctx)
	if c.Holder != actor.Holder() && !actor.Role.Allows(domain.RoleOperator) {
		return domain.Errorf(domain.Forbidden, "story '%s' is claimed by %s", id, c.By)
	}
	err = s.end(ctx, *c, "")
	s.stories.recent.Forget(storyKey(project, id))
	return err
}

// end ends a claim, which may have ended already. stage is where its story is finished, "" if it is not.
func (s *Claims) end(ctx context.Context, c domain.Claim, stage string) error {
	change := domain.Change{
		Action: domain.StoryReleased, Subject: storyKey(c.Project, c.StoryID), Project: c.Project,
		Detail: details(was("claim", s.table.labelled(c).By, ""), is("stage", stage)),
	}
	err := s.stories.audit.change(ctx, change, func(e *domain.AuditEntry) error { return s.table.end(ctx, e, c) })
	if domain.CodeOf(err) == domain.NotFound {
		return nil
	}
	return err
}

// endPause is the pause after looking for claims that end, and endCheck how often that is done though nothing was
// noticed.
const endPause, endCheck = 50 * time.Millisecond, 10 * time.Second

// goneLife is how long a claim outlives its story, which may come back: a branch may be without it for a while.
const goneLife = 7 * 24 * time.Hour

// Run ends the claims of stories that are moved to the done stage, by whatever means, and of those that have been gone
// for long, until ctx ends. The leader does that.
func (s *Claims) Run(ctx context.Context) error {
	check := time.NewTicker(endCheck)
	defer check.Stop()
	for {
		changed := s.table.news.changed("")
		if s.leader.Leads() {
			if err := s.endFinished(ctx); err != nil && domain.CodeOf(err) != domain.Unavailable {
				return supervise.UnlessEnded(ctx, err)
			}
		}
		supervise.Sleep(ctx, endPause)
		select {
		case <-changed:
		case <-check.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *Claims) endFinished(ctx context.Context) error {
	boards := map[string]map[string]string{}                 // the stages of stories, by project
	now, gone := time.Now(), map[domain.StoryKey]time.Time{} // not the shared clock, which may jump
	for key, c := range *s.table.current.Load() {
		stages := s.pipelines.known(key.Project).stages
		if boards[key.Project] == nil {
			boards[key.Project] = stagesByStory(stages)
		}
		stage, found := boards[key.Project][key.ID]
		if since, known := s.gone[key]; !found && known {
			gone[key] = since
		} else if !found && len(stages) > 0 {
			gone[key] = now
		}
		long := !found && now.Sub(cmp.Or(gone[key], now)) >= goneLife
		if long || c.Ended(stages, stage) {
			if err := s.endIfFinished(ctx, c, stages, long); err != nil {
				return err
			}
		}
	}
	s.gone = gone
	return nil
}

func stagesByStory(stages []domain.Stage) map[string]string {
	found := map[string]string{}
	for _, stage := range stages {
		for i := range stage.Items {
			found[stage.Items[i].StoryID] = stage.Name
		}
	}
	return found
}

// endIfFinished ends a claim if its story is finished now, or gone: the board may be older than the claim.
func (s *Claims) endIfFinished(ctx context.Context, c domain.Claim, stages []domain.Stage, gone bool) error {
	p, registered := s.stories.projects.Registry().Find(c.Project)
	if !registered {
		return nil
	}
	story, err := s.find(ctx, p, c.StoryID)
	if gone && domain.CodeOf(err) == domain.NotFound {
		return s.end(ctx, c, "")
	}
	if err != nil || !c.Ended(stages, story.Stage) {
		return nil //nolint:nilerr // it is looked at again
	}
	return s.end(ctx, c, story.Stage)
}
