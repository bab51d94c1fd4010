package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// Bounds of a story, of which a good server sends less.
const (
	maxStoryBody   = 256 << 10
	maxFrontMatter = 512 << 10 // 64 KiB of YAML with its aliases followed
	maxCommits     = 50
)

var errNoStory = domain.Errorf(domain.BadGateway, "answers with something else than a story")

// storyJSON is what a project server answers at /api/stories/{id}.
type storyJSON struct {
	StoryID          *string         `json:"story_id"`
	StoryName        string          `json:"story_name"`
	Stage            string          `json:"stage"`
	SinceMS          int64           `json:"since_ms"`
	Blocked          string          `json:"blocked"`
	BlockedSinceMS   int64           `json:"blocked_since_ms"`
	MergeFailure     string          `json:"merge_failure"`
	Path             string          `json:"path"`
	Version          string          `json:"version"`
	FrontMatter      json.RawMessage `json:"front_matter"`
	FrontMatterError string          `json:"front_matter_error"`
	Body             string          `json:"body"`
	BodyCut          bool            `json:"body_cut"`
	Criteria         *struct {
		Done  int `json:"done"`
		Total int `json:"total"`
	} `json:"criteria"`
	Commits  json.RawMessage `json:"commits"`
	Writable bool            `json:"writable"`
}

type commitJSON struct {
	Hash    string `json:"hash"`
	Author  string `json:"author"`
	AtMS    int64  `json:"at_ms"`
	Subject string `json:"subject"`
	Files   int    `json:"files"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// decodeStory reads an answer and cuts what is too long in it.
func decodeStory(a answer, id string) (domain.Story, error) {
	var s storyJSON
	if err := json.Unmarshal(a.body, &s); err != nil || s.StoryID == nil || *s.StoryID != id {
		return domain.Story{}, domain.WrapError(domain.BadGateway, errors.Join(errNoStory, err), errNoStory.Message)
	}
	file := &domain.StoryFile{
		Path: domain.CutText(s.Path), Version: domain.CutText(s.Version), FrontMatter: s.FrontMatter,
		FrontMatterError: domain.CutText(s.FrontMatterError), Body: s.Body, BodyCut: s.BodyCut, Writable: s.Writable,
	}
	if len(file.Body) > maxStoryBody {
		file.Body, file.BodyCut = strings.ToValidUTF8(file.Body[:maxStoryBody], ""), true
	}
	switch {
	case s.FrontMatter == nil || string(s.FrontMatter) == "null":
		file.FrontMatter = json.RawMessage("{}")
	case len(s.FrontMatter) > maxFrontMatter || s.FrontMatter[0] != '{' || nestsOver(s.FrontMatter, maxDepth):
		file.FrontMatter, file.FrontMatterError = json.RawMessage("{}"), "the project server sent front matter that cannot be shown"
	}
	if s.Criteria != nil {
		file.Criteria = &domain.Criteria{Done: s.Criteria.Done, Total: s.Criteria.Total}
	}
	var err error
	if file.Commits, err = decodeCommits(s.Commits); err != nil {
		return domain.Story{}, domain.WrapError(domain.BadGateway, err, errNoStory.Message)
	}
	return domain.Story{
		ID: id, Name: domain.CutText(s.StoryName), Stage: domain.CutText(s.Stage), Since: fromMS(s.SinceMS),
		Blocked: domain.CutText(s.Blocked), BlockedSince: fromMS(s.BlockedSinceMS), MergeFailure: domain.CutText(s.MergeFailure),
		File: file, Reachable: true,
	}, nil
}

// decodeCommits reads the first maxCommits of a list, nil for null: a list of millions costs no more.
func decodeCommits(list json.RawMessage) ([]domain.Commit, error) {
	decoder := json.NewDecoder(bytes.NewReader(list))
	switch start, err := decoder.Token(); {
	case err == io.EOF || err == nil && start == nil:
		return nil, nil
	case start != json.Delim('['):
		return nil, errNoStory
	}
	commits := []domain.Commit{}
	for decoder.More() && len(commits) < maxCommits {
		var c commitJSON
		if err := decoder.Decode(&c); err != nil {
			return nil, err
		}
		commits = append(commits, domain.Commit{
			Hash: domain.CutText(c.Hash), Author: domain.CutText(c.Author), Subject: domain.CutText(c.Subject), At: fromMS(c.AtMS),
			Files: c.Files, Added: c.Added, Removed: c.Removed,
		})
	}
	return commits, nil
}

// fromMS returns the time of Unix milliseconds, the zero time for 0.
func fromMS(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
