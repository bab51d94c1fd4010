package service

import (
	"cmp"
	"context"
	"strings"
	"time"

	"switchyard/internal/clock"
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
		Detail: details(changeOf("claim", s.table.labelled(c).By, ""), valueOf("stage", stage)),
	}
	err := s.stories.audit.change(ctx, change, func(e *domain.AuditEntry) error {
		return s.table.replace(ctx, c, nil, func(ctx context.Context) error { return s.table.store.EndClaim(ctx, e, c) })
	})
	if domain.CodeOf(err) == domain.NotFound {
		return nil
	}
	return err
}

// endPause is the pause after looking for claims that end, and endCheck how often to look even if nothing was noticed.
const endPause, endCheck = 50 * time.Millisecond, 10 * time.Second

// endAfter is how long a claim outlives its story on the board: another branch may be checked out for a while.
const endAfter = time.Minute

// Run ends the claims of stories that are moved to the done stage, by whatever means, and of those that have long been
// gone, until ctx ends. The leader does that.
func (s *Claims) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		changed := s.table.free.Changed("")
		if s.leader.Leads() {
			if err := s.endFinished(ctx); err != nil && domain.CodeOf(err) != domain.Unavailable {
				return supervise.UnlessEnded(ctx, err)
			}
		}
		supervise.Sleep(ctx, endPause)
		supervise.Await(ctx, changed, endCheck)
	}
	return nil
}

func (s *Claims) endFinished(ctx context.Context) error {
	boards := map[string]map[string]string{}              // the stages of stories, by project
	now, next := time.Now(), map[domain.StoryKey]ending{} // not the shared clock, which may jump
	for _, c := range s.table.list() {
		key := c.Key()
		stages := s.pipelines.known(key.Project).stages
		if boards[key.Project] == nil {
			boards[key.Project] = stagesByStory(stages)
		}
		stage, found := boards[key.Project][key.ID]
		since, known := s.ending[key]
		if !domain.EndsClaim(stages, stage) && (found || len(stages) == 0 && !known) {
			continue
		}
		if !known || len(stages) > 0 && since.stage != stage {
			since = ending{stage, now}
		}
		next[key] = since
		long := now.Sub(since.at) >= endAfter
		if long || found && stage != c.Stage && s.wasMoved(ctx, c, stage) {
			if err := s.endIfFinished(ctx, c, stages, long && !found); err != nil {
				return err
			}
		}
	}
	s.ending = next
	return nil
}

// ending says since when the board has shown a claimed story in a stage that ends its claim, "" if it is gone.
type ending struct {
	stage string
	at    time.Time
}

func (s *Claims) wasMoved(ctx context.Context, c domain.Claim, stage string) bool {
	visits, _ := s.stories.visits.Story(ctx, c.Project, c.StoryID)
	if len(visits) == 0 {
		return false
	}
	last := visits[len(visits)-1]
	return last.Stage == stage && last.Source == domain.FromEvent && !last.EventAt.Before(c.Since)
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

// endIfFinished ends a claim if its story is now finished or gone: the board may be older than the claim.
func (s *Claims) endIfFinished(ctx context.Context, c domain.Claim, stages []domain.Stage, gone bool) error {
	p, registered := s.stories.projects.Registry().Find(c.Project)
	if !registered {
		return nil
	}
	story, err := s.find(ctx, p, c.StoryID)
	if gone && domain.CodeOf(err) == domain.NotFound {
		return s.end(ctx, c, "")
	}
	if err != nil || !domain.EndsClaim(stages, story.Stage) {
		return nil //nolint:nilerr // it will be checked again
	}
	return s.end(ctx, c, story.Stage)
}

// find returns a story as it is now, or as the board shows it if its server has no single stories.
func (s *Claims) find(ctx context.Context, p domain.Project, id string) (domain.Story, error) {
	story, err := s.stories.servers.Story(ctx, p, id)
	if domain.CodeOf(err) == domain.NotFound {
		item, stage := s.pipelines.find(ctx, p.Name, id)
		if item == nil {
			return story, domain.Errorf(domain.NotFound, "project '%s' has no story '%s'", p.Name, id)
		}
		story, err = domain.Story{Stage: stage, Blocked: item.Blocked}, nil
	}
	story.Project, story.ID = p.Name, id
	return story, err
}

// stillFree returns the story of a new claim, or errMoved if it has meanwhile been moved, blocked or removed, or waits
// for another.
func (s *Claims) stillFree(ctx context.Context, p domain.Project, id, stage string) (domain.Story, error) {
	story, err := s.find(ctx, p, id)
	waits := story.File != nil && len(story.File.WaitsFor) > 0
	if domain.CodeOf(err) == domain.NotFound || err == nil && (story.Stage != stage || story.Blocked != "" || waits) {
		return story, errMoved
	}
	return story, err
}

// newEntry returns the audit entry of the actor's new claim, which was by's before, "" for nobody's.
func (s *Claims) newEntry(ctx context.Context, by string) domain.AuditEntry {
	actor := domain.ActorOf(ctx)
	return domain.NewAuditEntry(clock.Now(), actor, domain.Change{
		Action: domain.StoryClaimed, Detail: changeOf("claim", by, s.table.agents.nameOf(actor)),
	})
}

// move moves the story of a new claim to a stage, "" for none, and records that. Unless a stage was requested, a server
// that does not move stories leaves it where it is. It also returns errMoved for a story that cannot be written
// although others can.
func (s *Claims) move(
	ctx context.Context, p domain.Project, c wonClaim, before domain.Story, to string, asked bool,
) error {
	began, stage := clock.Now(), before.Stage
	moves := to != "" && to != before.Stage && (asked || before.File != nil)
	if !moves {
		to = ""
	}
	if moves || c.Worktree != "" && before.File != nil { // whose server knows its work trees
		defer s.stories.events.making.begin(s.stories.changesOf(ctx, before, nil, to, began))()
		moved, err := s.patch(ctx, p, before, to, c.Worktree)
		isUnknown := strings.HasPrefix(domain.MessageOf(err), "worktree:")
		switch code := domain.CodeOf(err); {
		case err == nil && moves:
			stage = moved
		case err == nil:
		case asked && moves || isUnknown || code != domain.Forbidden && code != domain.Invalid:
			return err
		}
	}
	audit := s.stories.audit
	c.entry.Detail = domain.CutText(details(c.entry.Detail, changeOf("stage", before.Stage, stage)))
	if err := s.table.record(ctx, &c.entry, s.stories.changesOf(ctx, before, nil, stage, began)); err != nil {
		audit.log.ErrorContext(ctx, "cannot store where a claimed story was moved", "error", err)
	}
	audit.logEntry(ctx, c.entry)
	return nil
}

// patch moves a story in a work tree, or where it is, and returns its stage. It returns Forbidden and Invalid for what
// its server refuses, and errMoved if the story has changed or is not in that work tree.
func (s *Claims) patch(
	ctx context.Context, p domain.Project, before domain.Story, to, worktree string,
) (string, error) {
	if before.File == nil {
		return "", domain.Errorf(domain.Forbidden, "the project server does not move stories")
	}
	change := map[string]string{"version": before.File.Version}
	if to != "" {
		change["stage"] = to
	}
	if worktree != "" {
		change["worktree"] = worktree
	}
	status, body, err := s.stories.send(ctx, p, before.ID, parsePatch(domain.EncodeJSON(change)))
	said := domain.CutText(strings.ToValidUTF8(strings.TrimSpace(string(body)), ""))
	switch {
	case err != nil:
		return "", err
	case status/100 == 2:
		return stageIn(body, to, nil), nil
	case status == 409:
		return "", domain.WrapError(domain.Conflict, errMoved, cmp.Or(said, domain.MessageOf(errMoved)))
	case status == 404:
		return "", domain.WrapError(domain.NotFound, errMoved, cmp.Or(said, "there is no such story"))
	case status == 403:
		return "", domain.Errorf(domain.Forbidden, "%s", said)
	case status == 400:
		return "", domain.Errorf(domain.Invalid, "%s", said)
	}
	return "", domain.Errorf(domain.BadGateway, "the project server answered with status %d", status)
}

// giveBack ends a new claim, or returns it to its former holder. It logs a failure: the claim then stays.
func (s *Claims) giveBack(ctx context.Context, c wonClaim) {
	if err := s.table.undo(ctx, c); err != nil && domain.CodeOf(err) != domain.NotFound {
		s.stories.audit.log.ErrorContext(ctx, "cannot give back a claim",
			"story", storyKey(c.Project, c.StoryID), "error", err)
	}
}
