package service

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

// Reviews are people's verdicts on the work on stories.
type Reviews struct {
	store   *database
	stories *Stories
	claims  *Claims
	working *Sessions
	merges  singleflight.Group

	mu      sync.Mutex
	merging map[string]domain.MergeAttempt // by project
}

type ReviewRequest struct {
	Verdict domain.Verdict
	Head    string  // the commit that was looked at
	Note    string  // "" for none
	Stage   *string // where the story moves, nil for the default
}

// Review records a verdict and moves the story. It returns NotFound, BadGateway for a project server that does not
// respond, Conflict for a head that no place of the story has any more, and Invalid, Forbidden and Conflict for a
// requested move that is refused. After an error nothing is recorded.
func (s *Reviews) Review(
	ctx context.Context, project, id string, asked ReviewRequest,
) (story domain.Story, err error) {
	p, err := s.stories.mayChange(ctx, project)
	if err != nil {
		return story, err
	}
	actor := domain.ActorOf(ctx)
	r := domain.Review{
		Project: project, StoryID: id, Verdict: asked.Verdict, Head: asked.Head, Note: strings.TrimSpace(asked.Note),
		By: s.stories.claims.agents.nameOf(actor), Via: actor.Channel,
	}
	if err := r.Check(); err != nil {
		return story, err
	}
	before, err := s.stories.Now(ctx, project, id)
	if err != nil {
		return story, err
	}
	before.Project, before.ID = project, id
	if before.File == nil || domain.PlaceWith(before.File.Work, r.Head) == nil {
		return story, domain.Errorf(domain.Conflict, "no branch or work tree of the story is at %s any more",
			domain.Truncate(r.Head, shownHash))
	}
	began := clock.Now()
	stage, done, err := s.move(ctx, p, before, asked)
	defer done()
	if err != nil {
		return story, err
	}
	if r.At = clock.Milli(); !r.At.After(began) { // the last change must come before the verdict
		r.At = r.At.Add(time.Millisecond)
	}
	entry := domain.NewAuditEntry(r.At, actor, domain.Change{
		Action: domain.ReviewMade, Subject: storyKey(project, id),
		Detail: details(r.Verdict.Word()+" at "+domain.Truncate(r.Head, shownHash), changeOf("stage", before.Stage, stage),
			valueOf("note", r.Note)),
	})
	err = s.stories.events.Record(context.WithoutCancel(ctx), domain.FeedRead{
		Cursor: domain.FeedCursor{Project: project}, ReceivedAt: r.At, Records: []domain.Record{r.Record(before.Name)},
		Review: &domain.ReviewRecord{
			Review: r, Entry: entry, Changes: s.stories.changesOf(ctx, before, nil, stage, began),
		},
	})
	if err != nil {
		return story, err
	}
	s.stories.audit.logEntry(ctx, entry)
	s.stories.recent.Forget(storyKey(project, id))
	s.stories.claims.free.Wake(project, "") // its holder may wait for work
	return s.stories.Get(context.WithoutCancel(ctx), project, id)
}

// shownHash is how much of a commit's hash is shown.
const shownHash = 10

// move moves the story of a verdict, and returns its stage. done must be called once that is recorded.
func (s *Reviews) move(
	ctx context.Context, p domain.Project, before domain.Story, asked ReviewRequest,
) (stage string, done func(), err error) {
	done = func() {}
	var to string
	if asked.Stage != nil {
		to = *asked.Stage
	} else {
		claim, err := s.stories.claims.now(ctx, p.Name, before.ID)
		if err != nil {
			return "", done, err
		}
		board, err := s.stories.pipelines.One(ctx, p.Name, claimBoardAge)
		if err != nil {
			return "", done, err
		}
		to = asked.Verdict.StageAfter(board.Stages, before.Stage, claim != nil)
	}
	if to == before.Stage || asked.Stage == nil && (to == "" || !before.File.Writable) {
		return before.Stage, done, nil
	}
	done = s.stories.events.making.begin(s.stories.changesOf(ctx, before, nil, to, clock.Now()))
	stage, err = s.claims.patch(ctx, p, before, to, "")
	if code := domain.CodeOf(err); asked.Stage == nil && (code == domain.Forbidden || code == domain.Invalid) {
		return before.Stage, done, nil
	}
	return stage, done, err
}

// noteLimit is how long to look for a note: a client waits at most 50 ms for an answer to its hook.
const noteLimit = 40 * time.Millisecond

// AtStop returns, once, the note with which the story of a stopping session was sent back since it last stopped, "" for
// none. It returns the event to pass on to the session: if its note could not be looked for, it counts as a stop that
// nobody could answer, so that the next one gets the note.
func (s *Reviews) AtStop(ctx context.Context, e domain.HookEvent) (note string, heard domain.HookEvent) {
	heard, _ = e.Identify()
	session, known := s.working.table.get(domain.AgentSessionKey{Asker: domain.ActorOf(ctx).Holder(), ID: heard.Session})
	if heard.Name != domain.HookStop || !known {
		return "", heard
	}
	project, id := s.working.link(session, s.working.links())
	if id == "" {
		return "", heard
	}
	ctx, cancel := context.WithTimeout(ctx, noteLimit)
	defer cancel()
	r, err := s.store.Review(ctx, project, id)
	switch {
	case domain.CodeOf(err) == domain.NotFound:
		return "", heard
	case err != nil:
		heard.Name = domain.HookStopFailure
		return "", heard
	case r.Verdict != domain.SentBack, !r.TakenAt.IsZero(), r.At.Before(cmp.Or(session.Stopped, session.Started)):
		return "", heard
	}
	if err = s.store.TakeReview(ctx, r, clock.Now()); domain.CodeOf(err) == domain.NotFound {
		return "", heard // another session got it
	}
	return r.Note, heard
}

// addReview adds the last verdict on a story.
func (s *Stories) addReview(ctx context.Context, story *domain.Story) error {
	r, err := s.store.Review(ctx, story.Project, story.ID)
	if domain.CodeOf(err) == domain.NotFound {
		return nil
	}
	r.Outdated = err == nil && !r.HasPlace(story.File) && !s.isInBase(ctx, r)
	story.Review = &r
	return err
}

// isInBase reports whether the project's checked-out commits contain the head of a verdict, as far as its server says.
func (s *Stories) isInBase(ctx context.Context, r domain.Review) bool {
	p, found := s.projects.Registry().Find(r.Project)
	if !found {
		return false
	}
	var c wire.Changes
	status, body, err := s.servers.Changes(ctx, p, r.StoryID, domain.ChangesQuery{Head: r.Head})
	return err == nil && status == 200 && json.Unmarshal(body, &c) == nil && c.Head == r.Head && c.MergeBase == r.Head
}

// markReviewTaken records that whoever has just claimed a story has its verdict.
func (s *Claims) markReviewTaken(ctx context.Context, story *domain.Story) {
	if story.Review == nil || !story.Review.TakenAt.IsZero() {
		return
	}
	now := clock.Milli()
	err := s.stories.store.TakeReview(ctx, *story.Review, now)
	if err == nil {
		story.Review.TakenAt = now
	} else if domain.CodeOf(err) != domain.NotFound {
		s.stories.audit.log.ErrorContext(ctx, "cannot store that a verdict was taken", "error", err)
	}
}

// wasSentBack reports whether a claimed story was sent back after the claim's holder last changed it.
func (s *Claims) wasSentBack(ctx context.Context, c domain.Claim) (bool, error) {
	r, err := s.stories.store.Review(ctx, c.Project, c.StoryID)
	if domain.CodeOf(err) == domain.NotFound || err == nil && r.Verdict != domain.SentBack {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	changes, err := s.table.store.StoryChanges(ctx, c.Project, c.StoryID, maxHistory)
	by := cmp.Or(s.table.labelled(c).By, c.By)
	return !slices.ContainsFunc(changes, func(change domain.StoryChange) bool {
		return change.By == by && change.At.After(r.At)
	}), err
}
