package projectserver

import (
	"net/http"
	"strings"

	"switchyard/internal/board"
	"switchyard/internal/gitlog"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

const storiesPath = "/api/stories/"

// storyID returns the id of the story that the path names, "" for none.
func storyID(r *http.Request) string {
	id, ok := strings.CutPrefix(r.URL.Path, storiesPath)
	if !ok || strings.Contains(id, "/") {
		return ""
	}
	return id
}

// story answers with everything that is known about a story.
func (s *server) story(w http.ResponseWriter, r *http.Request) error {
	details, err := s.Board.Read(storyID(r))
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusOK, s.encodeStory(details))
	return nil
}

func (s *server) encodeStory(d *board.Details) wire.Story {
	since := unixMS(d.Since)
	story := wire.Story{
		Project: s.Name, StoryID: d.ID, StoryName: d.Name, Stage: &d.Stage, SinceMS: &since,
		Blocked: web.OrNull(d.Blocked), MergeFailure: web.OrNull(d.MergeFailure), Path: &d.Path, Version: &d.Version,
		FrontMatter: d.FrontMatter, Body: &d.Body, BodyCut: d.BodyCut, Writable: s.Board.Writable(),
	}
	if d.Blocked != "" {
		since := unixMS(d.BlockedSince)
		story.BlockedSinceMS = &since
	}
	if d.FrontMatterErr != nil {
		story.FrontMatterError = web.OrNull(d.FrontMatterErr.Error())
	}
	if d.Criteria != nil {
		story.Criteria = &wire.Criteria{Done: d.Criteria.Done, Total: d.Criteria.Total}
	}
	if s.Commits != nil {
		story.Commits = encodeCommits(s.Commits.Commits(d.ID))
	}
	return story
}

func encodeCommits(commits []*gitlog.Commit) wire.Commits {
	if commits == nil {
		return nil
	}
	list := make(wire.Commits, len(commits))
	for i, c := range commits {
		list[i] = wire.Commit{
			Hash: c.Hash, Author: c.Author, AtMS: unixMS(c.At), Subject: c.Subject, Files: c.Files, Added: c.Added,
			Removed: c.Removed,
		}
	}
	return list
}
