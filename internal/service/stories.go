package service

import (
	"context"
	"encoding/json"
	"slices"

	"golang.org/x/sync/singleflight"

	"switchyard/internal/domain"
)

// StoryServers reads and changes stories on project servers. It limits time and size of responses.
type StoryServers interface {
	// Story fetches a story. It returns NotFound for an unknown story, and for a server without single stories. The
	// messages of other errors say in words why there is no response.
	Story(ctx context.Context, p domain.Project, id string) (domain.Story, error)
	// Picture fetches a picture that a story's text names. Its errors are those of Story.
	Picture(ctx context.Context, p domain.Project, id, path string) ([]byte, error)
	// PatchStory and CreateStory send a body and return status and body of the response; an error means that there is
	// none.
	PatchStory(ctx context.Context, p domain.Project, id string, change []byte) (status int, body []byte, err error)
	CreateStory(ctx context.Context, p domain.Project, story []byte) (status int, body []byte, err error)
	// Changes fetches what was made for a story, with the results of PatchStory.
	Changes(ctx context.Context, p domain.Project, id string, q domain.ChangesQuery) (status int, body []byte, err error)
	// Merge requests a merge as in wire.Merge, and waits for its end; its results are those of PatchStory.
	Merge(ctx context.Context, p domain.Project, id string, merge []byte) (status int, body []byte, err error)
	// FindTexts returns stories whose texts contain all the words, at most limit, the best first, and their number. A
	// server without search has none.
	FindTexts(
		ctx context.Context, p domain.Project, words string, limit int,
	) (found []domain.TextRef, total int, err error)
}

// maxHistory is how many events of a story are returned.
const maxHistory = 500

// Stories combines stories from project servers with their events in the stream.
type Stories struct {
	audit     *Audit
	projects  *Projects
	pipelines *Pipelines
	events    *Events
	visits    *Visits
	claims    *claimTable
	costs     *Costs
	sessions  *Sessions
	store     *database
	servers   StoryServers
	recent    singleflight.Group
}

// Get returns a story. If its project server does not respond, the story comes from the stream and the project's last
// pipeline. It returns NotFound for an unknown project, and for a story that none of these have.
func (s *Stories) Get(ctx context.Context, project, id string) (domain.Story, error) {
	p, found := s.projects.Registry().Find(project)
	if !found {
		return domain.Story{}, projectNotFound(project)
	}
	story, err := s.servers.Story(ctx, p, id)
	if err != nil {
		code, reason := domain.CodeOf(err), domain.MessageOf(err)
		if code == domain.LoopDetected || code != domain.NotFound && ctx.Err() != nil {
			return domain.Story{}, err
		}
		if story, err = s.lastKnown(ctx, project, id); err != nil {
			return domain.Story{}, err
		}
		switch story.Reachable = code == domain.NotFound; {
		case !story.Reachable:
			story.Error = reason
		case story.Stage != "": // otherwise it has left the board
			story.Error = "the project server does not show this story"
		}
	}
	story.Project, story.ID, story.URL = project, id, p.URL
	s.sessions.mark(&story)
	if err := s.addPast(ctx, &story); err != nil {
		return domain.Story{}, err
	}
	if last := len(story.Visits) - 1; last >= 0 && story.Stage != "" && story.Visits[last].Stage == story.Stage {
		story.SinceAtLeast = story.SinceAtLeast && story.Visits[last].IsSince(story.Since)
		story.Since = story.Visits[last].From
		if since := story.Visits[last].BlockedSince; story.Blocked != "" && !since.IsZero() {
			story.BlockedSince = since
		}
	}
	return story, nil
}

// addPast adds a story's claim, review, events and visits; while the store cannot be reached, only its claim as last
// known.
func (s *Stories) addPast(ctx context.Context, story *domain.Story) (err error) {
	if s.events.Available() != nil {
		story.Claim = s.claims.of(story.Project, story.ID)
		return nil
	}
	events, err := s.store.StoryEvents(ctx, story.Project, story.ID, maxHistory)
	if err != nil {
		return err
	}
	making := slices.DeleteFunc(s.events.making.now(), func(c domain.StoryChange) bool {
		return c.Project != story.Project || c.StoryID != story.ID
	})
	changes, err := s.claims.store.StoryChanges(ctx, story.Project, story.ID, maxHistory)
	if err != nil {
		return err
	}
	story.History = s.events.Past(events, withPending(changes, making))
	if story.Claim, err = s.claims.now(ctx, story.Project, story.ID); err != nil {
		return err
	}
	if err := s.addReview(ctx, story); err != nil {
		return err
	}
	if story.Cost, err = s.costs.Story(ctx, story.Project, story.ID); err != nil {
		return err
	}
	story.Visits, err = s.visits.Story(ctx, story.Project, story.ID)
	return err
}

// Picture returns a picture that a story's text names, relative to the story's file. It returns NotFound and
// BadGateway.
func (s *Stories) Picture(ctx context.Context, project, id, path string) ([]byte, error) {
	p, found := s.projects.Registry().Find(project)
	if !found {
		return nil, projectNotFound(project)
	}
	return s.servers.Picture(ctx, p, id, path)
}

// Changes returns the status and body of the project server's answer about what was made for a story. It returns
// NotFound for an unknown project, and BadGateway for a server that does not respond.
func (s *Stories) Changes(
	ctx context.Context, project, id string, q domain.ChangesQuery,
) (status int, body []byte, err error) {
	p, found := s.projects.Registry().Find(project)
	if !found {
		return 0, nil, projectNotFound(project)
	}
	return s.servers.Changes(ctx, p, id, q)
}

// Now returns a story from its project server, without its past. It returns NotFound, and BadGateway for a server that
// does not respond.
func (s *Stories) Now(ctx context.Context, project, id string) (domain.Story, error) {
	p, found := s.projects.Registry().Find(project)
	if !found {
		return domain.Story{}, projectNotFound(project)
	}
	return s.servers.Story(ctx, p, id)
}

func (s *Stories) lastKnown(ctx context.Context, project, id string) (domain.Story, error) {
	if item, stage := s.pipelines.find(ctx, project, id); item != nil {
		story := domain.Story{
			Name: item.StoryName, Stage: stage, Since: item.Since, Blocked: item.Blocked, MergeFailure: item.MergeFailure,
			SinceAtLeast: item.SinceAtLeast,
		}
		if item.Blocked != "" {
			story.BlockedSince = item.TroubleSince()
		}
		return story, nil
	}
	name, err := s.store.StoryName(ctx, project, id)
	return domain.Story{Name: name}, notFound(err, "project '"+project+"' has no story '"+id+"'")
}

// Recent is Get for pages that refresh themselves: concurrent readers of a story share one call. The result must not be
// changed.
func (s *Stories) Recent(ctx context.Context, project, id string) (domain.Story, error) {
	// It ends within the limits of StoryServers.
	get := func(ctx context.Context) (domain.Story, error) { return s.Get(ctx, project, id) }
	return shareCall(ctx, &s.recent, storyKey(project, id), get)
}

func storyKey(project, id string) string { return domain.StoryKey{Project: project, ID: id}.String() }

func (s *Stories) Create(ctx context.Context, project string, story []byte) (status int, body []byte, err error) {
	p, err := s.mayChange(ctx, project)
	if err != nil {
		return 0, nil, err
	}
	if ctx.Err() != nil {
		return 0, nil, ctx.Err() // nobody waits for it any more
	}
	ctx = context.WithoutCancel(ctx)
	status, body, err = s.servers.CreateStory(ctx, p, story)
	if err == nil && status/100 == 2 {
		var made struct {
			ID    string `json:"story_id"`
			Name  string `json:"story_name"`
			Stage string `json:"stage"`
		}
		_ = json.Unmarshal(body, &made) // fields that other implementations omit stay empty
		s.audit.changed(ctx, domain.Change{
			Action: domain.StoryCreated, Subject: storyKey(project, made.ID),
			Detail: details(valueOf("name", made.Name), valueOf("stage", made.Stage)),
		})
	}
	return status, body, err
}

// mayChange returns a project whose stories the actor may change. It returns NotFound and Forbidden.
func (s *Stories) mayChange(ctx context.Context, project string) (domain.Project, error) {
	p, found := s.projects.Registry().Find(project)
	if !found {
		return domain.Project{}, projectNotFound(project)
	}
	return p, domain.ActorOf(ctx).CheckScope(project)
}
