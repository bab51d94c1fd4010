package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// nullable is an argument for which null differs from leaving it out.
type nullable struct{ raw json.RawMessage }

func (n *nullable) UnmarshalJSON(raw []byte) error {
	n.raw = slices.Clone(raw)
	return nil
}

func (s *Server) updateStory(ctx context.Context, in struct {
	storyKey
	Stage             *string  `json:"stage"`
	Blocked           nullable `json:"blocked"`
	ClearMergeFailure bool     `json:"clear_merge_failure"`
	Version           *string  `json:"version"`
},
) (any, error) {
	if _, err := s.findProject(in.Project); err != nil {
		return nil, err
	}
	change := map[string]any{}
	if in.Stage != nil {
		change["stage"] = *in.Stage
	}
	if in.Blocked.raw != nil {
		change["blocked"] = in.Blocked.raw
	}
	if in.ClearMergeFailure {
		change["merge_failure"] = nil
	}
	if len(change) == 0 {
		return nil, domain.Errorf(domain.Invalid, "nothing to change: give stage, blocked or clear_merge_failure")
	}
	if in.Version == nil {
		story, err := s.story(ctx, in.storyKey)
		if err != nil {
			return nil, err
		}
		if story.File == nil {
			return nil, domain.Errorf(domain.Conflict, "the story cannot be changed now: %s", noFile(story))
		}
		in.Version = &story.File.Version
	}
	change["version"] = *in.Version
	status, answer, err := s.service.Stories.Patch(ctx, in.Project, in.StoryID, web.EncodeJSON(change))
	if err != nil {
		return nil, err
	}
	return readUpdate(in.Project, status, answer)
}

// noFile says why nothing is known about a story's file.
func noFile(story domain.Story) string {
	if story.Error != "" {
		return "the project server " + story.Error
	}
	return "it is no longer on the board"
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

// readUpdate reads a project server's answer to a change.
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
	return updateJSON{ // the project that was asked for, not the one that the server names
		project, now.StoryID, now.StoryName, wire.Text(now.Stage), now.Blocked, now.MergeFailure, wire.Text(now.Version),
	}, nil
}
