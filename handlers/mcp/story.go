package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

// How much of a story is shown. The console has the rest.
const (
	maxBody        = 12 << 10 // bytes
	maxFrontMatter = 4 << 10  // bytes
	maxPast        = 20       // events, visits and commits each
)

// storyJSON is a story with its fields as in the API.
type storyJSON struct {
	wire.Story
	Error       *string            `json:"error"` // why the rest is not known
	Claim       *wire.Claim        `json:"claim"`
	Review      *wire.Review       `json:"review"`
	Cost        *wire.Cost         `json:"cost"`
	MoreCommits int                `json:"more_commits"`
	Visits      []wire.Visit       `json:"stays"`
	MoreVisits  int                `json:"more_stays"` // older ones
	History     []domain.PastEvent `json:"history"`
	MoreHistory int                `json:"more_history"` // older ones
	Next        int64              `json:"next"`
}

// story returns a story, or an error that says how to find its id.
func (s *Server) story(ctx context.Context, key storyKey) (domain.Story, error) {
	story, err := s.service.Stories.Get(ctx, key.Project, key.StoryID)
	return story, hint(err, domain.NotFound, s.storyIDs(key.Project))
}

func (s *Server) getStory(ctx context.Context, key storyKey) (storyJSON, error) {
	next := s.service.Events.LastID()
	story, err := s.story(ctx, key)
	if err != nil {
		return storyJSON{}, err
	}
	encoded := encodeStory(story)
	encoded.Next = next
	return encoded, nil
}

func encodeStory(s domain.Story) storyJSON {
	encoded := storyJSON{
		Story: wire.NewStory(s), Error: wire.OrNull(s.Error), Claim: wire.NewClaim(s.Claim),
		Review: wire.NewReview(s.Review), Cost: wire.NewCost(s.Cost), Visits: []wire.Visit{},
	}
	encoded.StoryName = short(s.Name)
	past := list[domain.PastEvent]{most: maxPast}
	for _, e := range slices.Backward(s.History) { // the newest are shown, oldest first
		past.add(e)
	}
	encoded.History, encoded.MoreHistory = past.shown(), past.more
	slices.Reverse(encoded.History)
	encoded.MoreVisits = max(0, len(s.Visits)-maxPast)
	for _, visit := range s.Visits[encoded.MoreVisits:] {
		visit.Stage = short(visit.Stage)
		encoded.Visits = append(encoded.Visits, wire.NewVisit(visit))
	}
	if encoded.Body != nil {
		body := shorten(*encoded.Body, maxBody)
		encoded.Body, encoded.BodyCut = &body, encoded.BodyCut || body != *encoded.Body
	}
	if len(encoded.FrontMatter) == 0 || len(encoded.FrontMatter) > maxFrontMatter {
		encoded.FrontMatter = json.RawMessage("{}")
	}
	encoded.MoreCommits = max(0, len(encoded.Commits)-maxPast)
	encoded.Commits = append(wire.Commits{}, encoded.Commits[:min(len(encoded.Commits), maxPast)]...)
	for i := range encoded.Commits {
		c := &encoded.Commits[i]
		c.Author, c.Subject = short(c.Author), short(c.Subject)
	}
	return encoded
}

func (s *Server) updateStory(ctx context.Context, in struct {
	storyKey
	Stage             *string         `json:"stage"`
	Blocked           json.RawMessage `json:"blocked"` // null if it is to be unblocked
	ClearMergeFailure bool            `json:"clear_merge_failure"`
	Task              json.RawMessage `json:"task"`
	Version           *string         `json:"version"`
	TakeOver          bool            `json:"take_over"`
	Worktree          *string         `json:"worktree"`
},
) (any, error) {
	change := map[string]any{}
	if in.Stage != nil {
		change["stage"] = *in.Stage
	}
	if in.Blocked != nil {
		change["blocked"] = in.Blocked
	}
	if in.ClearMergeFailure {
		change["merge_failure"] = nil
	}
	if in.Task != nil {
		change["task"] = in.Task
	}
	if len(change) == 0 {
		return nil, domain.Errorf(domain.Invalid, "nothing to change: give stage, blocked, task or clear_merge_failure")
	}
	if in.Version == nil {
		story, err := s.story(ctx, in.storyKey)
		if err != nil {
			return nil, err
		}
		switch {
		case story.File == nil && story.Error != "":
			return nil, domain.Errorf(domain.Conflict, "the story cannot be changed now: the project server %s", story.Error)
		case story.File == nil:
			return nil, domain.Errorf(domain.Conflict, "the story cannot be changed now: it is no longer on the board")
		}
		in.Version = &story.File.Version
	}
	change["version"] = *in.Version
	if in.Worktree != nil {
		change["worktree"] = *in.Worktree
	}
	if in.TakeOver {
		change["take_over"] = true
	}
	status, answer, err := s.service.Stories.Patch(ctx, in.Project, in.StoryID, domain.EncodeJSON(change))
	if err != nil {
		return nil, err
	}
	stages := s.service.Pipelines.Stages(in.Project)
	if status == 400 && in.Stage != nil &&
		!slices.ContainsFunc(stages, func(s domain.Stage) bool { return s.Name == *in.Stage }) {
		answer = []byte(domain.MessageOf(domain.NoStage(stages, *in.Stage)))
	}
	return readUpdate(in.Project, status, answer)
}

// updateJSON is a story after a change: the fields that a change can set, and the version for the next one.
type updateJSON struct {
	Project      string  `json:"project"`
	StoryID      string  `json:"story_id"`
	StoryName    string  `json:"story_name"`
	Stage        string  `json:"stage"`
	Blocked      *string `json:"blocked"`
	MergeFailure *string `json:"merge_failure"`
	Version      string  `json:"version"`
}

func readUpdate(project string, status int, answer []byte) (any, error) {
	reason := short(strings.TrimRight(string(answer), ".\n"))
	switch {
	case status == 409:
		return nil, domain.Errorf(domain.Conflict, "%s. Read the story again with get_story, then decide again", reason)
	case status == 403:
		return nil, domain.Errorf(domain.Forbidden, "%s. Only its operator can allow that: tell the user", reason)
	case status == 404:
		return nil, domain.Errorf(domain.NotFound, "%s. The project server has no such story: list_stories shows the ones "+
			"that exist", reason)
	case status >= 400:
		return nil, domain.Errorf(domain.Invalid, "the project server refuses the change (HTTP status %d): %s", status,
			reason)
	}
	var now wire.Story
	if err := json.Unmarshal(answer, &now); err != nil {
		return nil, domain.WrapError(domain.BadGateway, err, "it answers with something other than a story")
	}
	return updateJSON{ // the requested project, not the one that the server names
		project, now.StoryID, now.StoryName, wire.Text(now.Stage), now.Blocked, now.MergeFailure, wire.Text(now.Version),
	}, nil
}
