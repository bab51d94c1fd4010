package upstream

import (
	"encoding/json"
	"errors"

	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

// Limits of a story, which exceed those of our own project servers.
const (
	maxStoryBody   = 256 << 10
	maxFrontMatter = 512 << 10 // 64 KiB of YAML with its aliases expanded
)

var errNoStory = domain.Errorf(domain.BadGateway, "answers with something other than a story")

// decodeStory decodes an answer and cuts texts and lists that are too long.
func decodeStory(a answer, id string) (domain.Story, error) {
	var s wire.Story
	if err := json.Unmarshal(a.body, &s); err != nil || s.StoryID != id {
		return domain.Story{}, domain.WrapError(domain.BadGateway, errors.Join(errNoStory, err), errNoStory.Message)
	}
	file := &domain.StoryFile{
		Path: text(s.Path), Version: text(s.Version), FrontMatter: s.FrontMatter,
		FrontMatterError: text(s.FrontMatterError), Body: wire.Text(s.Body), BodyCut: s.BodyCut, Writable: s.Writable,
	}
	if len(file.Body) > maxStoryBody {
		file.Body, file.BodyCut = domain.CutBytes(file.Body, maxStoryBody), true
	}
	switch {
	case s.FrontMatter == nil || string(s.FrontMatter) == "null":
		file.FrontMatter = json.RawMessage("{}")
	case len(s.FrontMatter) > maxFrontMatter || s.FrontMatter[0] != '{' || nestsOver(s.FrontMatter, maxDepth):
		file.FrontMatter, file.FrontMatterError = json.RawMessage("{}"), "the project server sent front matter that "+
			"cannot be shown"
	}
	if s.Criteria != nil {
		file.Criteria = &domain.Criteria{Done: s.Criteria.Done, Total: s.Criteria.Total}
	}
	if s.Commits != nil {
		file.Commits = make([]domain.Commit, 0, len(s.Commits))
	}
	for _, c := range s.Commits {
		file.Commits = append(file.Commits, domain.Commit{
			Hash: domain.CutText(c.Hash), Author: domain.CutText(c.Author), Subject: domain.CutText(c.Subject),
			At:    wire.Time(&c.AtMS),
			Files: c.Files, Added: c.Added, Removed: c.Removed,
		})
	}
	return domain.Story{
		ID: id, Name: domain.CutText(s.StoryName), Stage: text(s.Stage), Since: wire.Time(s.SinceMS),
		Blocked: text(s.Blocked), BlockedSince: wire.Time(s.BlockedSinceMS), MergeFailure: text(s.MergeFailure),
		File: file, Reachable: true,
	}, nil
}

func text(t *string) string { return domain.CutText(wire.Text(t)) }
