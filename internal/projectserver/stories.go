package projectserver

import (
	"encoding/json"
	"net/http"
	"strings"

	"switchyard/internal/board"
	"switchyard/internal/gitlog"
	"switchyard/internal/web"
)

const storiesPath = "/api/stories/"

// storyID is the story that the path names, "" when it names none.
func storyID(r *http.Request) string {
	id, ok := strings.CutPrefix(r.URL.Path, storiesPath)
	if !ok || strings.Contains(id, "/") {
		return ""
	}
	return id
}

// storyJSON is a story as it is answered.
type storyJSON struct {
	Project          string          `json:"project"`
	StoryID          string          `json:"story_id"`
	StoryName        string          `json:"story_name"`
	Stage            string          `json:"stage"`
	SinceMS          int64           `json:"since_ms"`
	Blocked          *string         `json:"blocked"`
	BlockedSinceMS   *int64          `json:"blocked_since_ms"`
	MergeFailure     *string         `json:"merge_failure"`
	Path             string          `json:"path"`
	Version          string          `json:"version"`
	FrontMatter      json.RawMessage `json:"front_matter"`
	FrontMatterError *string         `json:"front_matter_error"`
	Body             string          `json:"body"`
	BodyCut          bool            `json:"body_cut"`
	Criteria         *criteriaJSON   `json:"criteria"`
	Commits          []commitJSON    `json:"commits"`
	Writable         bool            `json:"writable"`
}

type criteriaJSON struct {
	Done  int `json:"done"`
	Total int `json:"total"`
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

// story answers with all that is known of a story.
func (s *server) story(w http.ResponseWriter, r *http.Request) error {
	details, err := s.Board.Read(storyID(r))
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusOK, s.newStoryJSON(details))
	return nil
}

func (s *server) newStoryJSON(d *board.Details) storyJSON {
	story := storyJSON{
		Project: s.Name, StoryID: d.ID, StoryName: d.Name, Stage: d.Stage, SinceMS: unixMS(d.Since),
		Blocked: web.OrNull(d.Blocked), MergeFailure: web.OrNull(d.MergeFailure), Path: d.Path, Version: d.Version,
		FrontMatter: d.FrontMatter, Body: d.Body, BodyCut: d.BodyCut, Writable: s.Board.Writable(),
	}
	if d.Blocked != "" {
		since := unixMS(d.BlockedSince)
		story.BlockedSinceMS = &since
	}
	if d.FrontMatterErr != nil {
		story.FrontMatterError = web.OrNull(d.FrontMatterErr.Error())
	}
	if d.Criteria != nil {
		story.Criteria = &criteriaJSON{d.Criteria.Done, d.Criteria.Total}
	}
	if s.Commits != nil {
		story.Commits = newCommitsJSON(s.Commits.Commits(d.ID))
	}
	return story
}

func newCommitsJSON(commits []*gitlog.Commit) []commitJSON {
	if commits == nil {
		return nil
	}
	list := make([]commitJSON, len(commits))
	for i, c := range commits {
		list[i] = commitJSON{c.Hash, c.Author, unixMS(c.At), c.Subject, c.Files, c.Added, c.Removed}
	}
	return list
}
