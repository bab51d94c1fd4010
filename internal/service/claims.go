package service

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
	"switchyard/internal/wire"
)

type Claims struct {
	table     *claimTable
	stories   *Stories
	pipelines *Pipelines
	costs     *Costs
	alerts    *Alerts
	leader    domain.Leadership

	mu     sync.Mutex
	texts  map[string]cachedBoardText // by project
	ending map[domain.StoryKey]ending // Run's own
}

type ClaimRequest struct {
	StoryID string // "" for the next free story of From
	From    string // a stage, "" for the one in which work waits
	// To is the stage to move the story to. "" is the next one for the next free story, and none for a named one.
	To       string
	Stay     bool          // do not move the story
	TakeOver bool          // pass on somebody else's claim of a named story
	Wait     time.Duration // how long to wait for a free story
	// Resume is whether a story that the actor already holds goes first, nil for the default: an agent's does.
	Resume *bool
	// Look only finds the story that would be claimed.
	Look bool
	// Worktree is where the holder's changes are written, "" for where the story is.
	Worktree string
}

const (
	// claimCheck is how often a waiting claim looks again: not every server reports its changes.
	claimCheck = 5 * time.Second
	// claimBoardAge is how old the board may be on which a story is first looked for.
	claimBoardAge = 100 * time.Millisecond
	// claimTries is how often to try a named story whose claims keep changing, nextTries how often the next one of a
	// board that keeps changing.
	claimTries, nextTries = 3, 20
	// maxWanted limits how many stories one transaction tries to claim.
	maxWanted = 50
)

// Owners returns who works on stories, given the agents that are alive.
func (s *Claims) Owners(agents []domain.Agent) *domain.Owners {
	return domain.NewOwners(s.table.all(), agents)
}

func (s *Claims) ByProject() map[string]map[string]domain.Claim {
	claims := map[string]map[string]domain.Claim{}
	for key, c := range s.table.all() {
		if claims[key.Project] == nil {
			claims[key.Project] = map[string]domain.Claim{}
		}
		claims[key.Project][key.ID] = c
	}
	return claims
}

type cachedBoardText struct {
	board  [2]uint64 // its version
	claims map[string]domain.Claim
	costs  uint64 // their version
	text   json.RawMessage
}

// Texts returns the texts of pipelines with the claims and costs of their stories. It keeps the last ones: making one
// takes as long as reading a board.
func (s *Claims) Texts(pipelines []domain.ProjectPipeline) []json.RawMessage {
	texts := make([]json.RawMessage, len(pipelines))
	claims, next := s.ByProject(), map[string]cachedBoardText{}
	s.mu.Lock()
	last := s.texts
	s.mu.Unlock()
	for i := range pipelines {
		p := &pipelines[i]
		if p.Text == nil {
			continue
		}
		mine, costs := claims[p.Project], s.costs.version(p.Project)
		if texts[i] = p.Text(); len(mine) == 0 && costs == 0 || len(texts[i]) == 0 {
			continue
		}
		board, known := last[p.Project]
		if !known || board.board != p.Version || board.costs != costs || !maps.Equal(board.claims, mine) {
			cost := func(id string) *domain.Micros { return s.costs.Of(p.Project, id) }
			board = cachedBoardText{p.Version, mine, costs, wire.WithClaims(texts[i], p.Stages, mine, cost)}
		}
		next[p.Project], texts[i] = board, board.text
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = next
	return texts
}

// Claim claims a story for the actor of ctx and moves it. found is false if no story becomes free in time. It returns
// Invalid for a stage that does not exist, Conflict for a named story that somebody else has claimed, Forbidden and
// Invalid if the story was to be moved and its project server does not do that, BadGateway if that does not respond,
// and NotFound. After an error nothing is claimed.
func (s *Claims) Claim(
	ctx context.Context, project string, r ClaimRequest,
) (story domain.Story, found bool, err error) {
	_, err = s.stories.mayChange(ctx, project)
	if err == nil {
		err = mayTakeOver(ctx, nil, r.TakeOver)
	}
	if err != nil {
		return story, false, err
	}
	late, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	for ctx.Err() == nil {
		changed := s.table.free.Changed(project)
		id, err := s.claim(ctx, project, r)
		if id != "" && err == nil {
			s.stories.recent.Forget(storyKey(project, id))
			story, err = s.stories.Get(context.WithoutCancel(ctx), project, id)
			if err == nil && !r.Look {
				s.markReviewTaken(context.WithoutCancel(ctx), &story)
			}
			return story, err == nil, err
		}
		if err != nil || late.Err() != nil {
			return story, false, err
		}
		supervise.Await(late, changed, claimCheck)
	}
	return story, false, nil
}

// claim claims a story now, and returns its id, "" if none is free.
func (s *Claims) claim(ctx context.Context, project string, r ClaimRequest) (id string, err error) {
	p, registered := s.stories.projects.Registry().Find(project)
	if !registered {
		return "", projectNotFound(project)
	}
	if r.StoryID != "" {
		return r.StoryID, s.named(ctx, p, r)
	}
	if id, err := s.storyToResume(ctx, p, r); id != "" || err != nil {
		if err == nil {
			_, err = s.checkStages(ctx, p, r)
		}
		return id, err
	}
	if s.alerts.StopReason(ctx, project) != "" {
		return "", nil
	}
	// Claims in quick succession share a board; afterwards the story itself is checked for changes.
	moved, maxAge := map[string]bool{}, claimBoardAge
	for range nextTries {
		id, again, err := s.next(ctx, p, r, maxAge, moved)
		if err != nil || id != "" || !again && maxAge == 0 {
			return id, err
		}
		maxAge = 0
	}
	return "", nil
}

var errMoved = domain.Errorf(domain.Conflict, "the story has just been changed by somebody else; try again")

func (s *Claims) named(ctx context.Context, p domain.Project, r ClaimRequest) error {
	stages, err := s.checkStages(ctx, p, r)
	if err != nil {
		return err
	}
	before, err := s.find(ctx, p, r.StoryID)
	if err != nil || r.Look {
		return err
	}
	wanted := s.table.newClaim(ctx, p.Name, r.StoryID, stageAfterClaim(stages, before.Stage, r.To))
	wanted.Worktree = r.Worktree
	c, err := s.win(ctx, wanted, r.TakeOver)
	if err != nil || c == nil {
		return err
	}
	if err = s.move(ctx, p, *c, before, r.To, true); err != nil {
		s.giveBack(ctx, *c)
	}
	return err
}

// checkStages returns Invalid if the board lacks a stage that a claim names, otherwise all its stages, none if the
// claim names none.
func (s *Claims) checkStages(ctx context.Context, p domain.Project, r ClaimRequest) ([]domain.Stage, error) {
	if r.From == "" && r.To == "" {
		return nil, nil
	}
	board, err := s.pipelines.One(ctx, p.Name, 0)
	if err == nil {
		_, _, err = claimStages(board.Stages, r)
	}
	return board.Stages, err
}

// win claims a story, if necessary from somebody else. It returns nil if the actor has claimed it already.
func (s *Claims) win(ctx context.Context, c domain.Claim, takeOver bool) (*wonClaim, error) {
	for range claimTries {
		entry := s.newEntry(ctx, "")
		won, held, err := s.table.add(ctx, &entry, c)
		switch {
		case domain.CodeOf(err) == domain.NotFound: // another claim has just ended
			continue
		case err != nil:
			return nil, err
		case won == 0:
			return &wonClaim{Claim: c, entry: entry}, nil
		case held.Holder == c.Holder:
			return nil, nil
		}
		if err := mayTakeOver(ctx, &held, takeOver); err != nil {
			return nil, err
		}
		entry = s.newEntry(ctx, held.By)
		entry.Subject = domain.CutText(c.Key().String())
		err = s.table.pass(ctx, &entry, held, c)
		if err == nil || domain.CodeOf(err) != domain.NotFound {
			return &wonClaim{c, entry, []domain.Claim{held}}, err
		}
	}
	return nil, errMoved
}
