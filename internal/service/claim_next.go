package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"switchyard/internal/domain"
)

// next claims the next free story of a board that is at most maxAge old, skipping those that have been moved meanwhile.
// again means that the board was out of date.
func (s *Claims) next(
	ctx context.Context, p domain.Project, r ClaimRequest, maxAge time.Duration, moved map[string]bool,
) (id string, again bool, err error) {
	board, err := s.pipelines.One(ctx, p.Name, maxAge)
	if err != nil {
		return "", false, err
	}
	from, to, err := claimStages(board.Stages, r)
	if err != nil || len(board.Stages) == 0 {
		return "", false, err
	}
	stage := board.Stages[from]
	var wanted []domain.Claim
	for _, id := range domain.NextStories(stage.Items, maxWanted, func(i *domain.Item) bool {
		return !moved[i.StoryID] && s.isFree(p.Name, i)
	}) {
		c := s.table.newClaim(ctx, p.Name, id, stageAfterClaim(board.Stages, stage.Name, to))
		c.Worktree = r.Worktree
		wanted = append(wanted, c)
	}
	if len(wanted) == 0 {
		return "", false, nil
	}
	if r.Look {
		return wanted[0].StoryID, false, nil
	}
	c := wonClaim{entry: s.newEntry(ctx, "")}
	won, _, err := s.table.add(ctx, &c.entry, wanted...)
	if won < 0 && err == nil || domain.CodeOf(err) == domain.NotFound { // others were faster, or a claim has just ended
		return "", true, nil
	}
	if err != nil {
		return "", false, err
	}
	c.Claim = wanted[won]
	before, err := s.stillFree(ctx, p, c.StoryID, stage.Name)
	if err == nil {
		err = s.move(ctx, p, c, before, to, r.To != "")
	}
	if err == nil {
		return c.StoryID, false, nil
	}
	s.giveBack(ctx, c)
	if errors.Is(err, errMoved) {
		moved[c.StoryID] = true
		return "", true, nil
	}
	return "", false, err
}

// isFree reports whether a story that waits on a board may be claimed by whoever comes first.
func (s *Claims) isFree(project string, i *domain.Item) bool {
	return i.Blocked == "" && len(i.WaitsFor) == 0 && s.table.of(project, i.StoryID) == nil
}

// Held returns the name of the actor of ctx as its claims have it, and these claims, oldest first.
func (s *Claims) Held(ctx context.Context) (by string, held []domain.Claim) {
	actor := domain.ActorOf(ctx)
	for _, c := range s.table.list() {
		if c.Holder == actor.Holder() {
			held = append(held, c)
		}
	}
	slices.SortFunc(held, func(a, b domain.Claim) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Key().String(), b.Key().String()))
	})
	return s.table.agents.nameOf(actor), held
}

// storyToResume returns the story that the actor goes on with, "" for none: the one claimed first among those sent
// back, or else among those that are where their claim left them and not blocked.
func (s *Claims) storyToResume(ctx context.Context, p domain.Project, r ClaimRequest) (id string, err error) {
	actor := domain.ActorOf(ctx)
	resume := actor.AgentID != ""
	if r.Resume != nil {
		resume = *r.Resume
	}
	if !resume && actor.AgentID == "" {
		return "", nil
	}
	if err := s.table.reloader.refreshStale(ctx); err != nil {
		return "", err
	}
	_, held := s.Held(ctx)
	held = slices.DeleteFunc(held, func(c domain.Claim) bool { return c.Project != p.Name })
	for _, c := range held {
		if back, err := s.wasSentBack(ctx, c); back || err != nil {
			return c.StoryID, err
		}
	}
	if !resume {
		return "", nil
	}
	stages := s.pipelines.known(p.Name).stages
	at := func(name string) int {
		return slices.IndexFunc(stages, func(s domain.Stage) bool { return s.Name == name })
	}
	for _, c := range held {
		story, err := s.find(ctx, p, c.StoryID)
		switch {
		case domain.CodeOf(err) == domain.NotFound:
		case err != nil:
			return "", err
		case story.Blocked != "":
		case story.Stage == c.Stage, at(story.Stage) < at(c.Stage) && story.Since.Before(c.Since): // it was never moved
			return c.StoryID, nil
		}
	}
	return "", nil
}

// stageAfterClaim returns the stage in which a claim leaves a story that is at a stage: to, "" for none, unless that
// finishes it, which ends the claim.
func stageAfterClaim(stages []domain.Stage, at, to string) string {
	if to == "" || domain.EndsClaim(stages, to) {
		return at
	}
	return to
}

// claimStages returns the index of the stage to claim from, and the name of the one to move to, "" for none. It returns
// Invalid for stages that do not exist.
func claimStages(stages []domain.Stage, r ClaimRequest) (from int, to string, err error) {
	index := func(field, name string) int {
		i := slices.IndexFunc(stages, func(s domain.Stage) bool { return s.Name == name })
		if i < 0 && name != "" {
			err = domain.Errorf(domain.Invalid, "%s: %s", field, domain.MessageOf(domain.NoStage(stages, name)))
		}
		return i
	}
	to = r.To
	if i := index("to", r.To); i >= 0 && stages[i].Other {
		err = domain.Errorf(domain.Invalid, "to: '%s' is no status of the board's own", stages[i].Title())
	}
	if from = index("from", r.From); from < 0 {
		from = domain.WaitingStage(stages)
	}
	for next := from + 1; to == "" && r.StoryID == "" && !r.Stay && next < len(stages); next++ {
		if !stages[next].Other {
			to = stages[next].Name
		}
	}
	return from, to, err
}
