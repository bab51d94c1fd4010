package projectserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// storyID returns the story that a request is for, "" for none, and which part of it, "" for all. Slashes of an id are
// escaped.
func storyID(r *http.Request) (id, part string) {
	id, _ = strings.CutPrefix(r.URL.Path, "/api/stories/")
	if id == r.URL.Path {
		return "", ""
	}
	for _, part := range []string{"/changes", "/merge"} {
		if rest, is := strings.CutSuffix(id, part); is && strings.HasSuffix(r.URL.EscapedPath(), part) {
			return rest, part
		}
	}
	return id, ""
}

// story answers with everything that is known about a story.
func (s *server) story(w http.ResponseWriter, r *http.Request) error {
	id, _ := storyID(r)
	details, err := s.Board.Read(id)
	return s.answer(w, http.StatusOK, details, err)
}

// picture answers with a picture that a story's text names.
func (s *server) picture(w http.ResponseWriter, r *http.Request) error {
	select {
	case s.pictures <- struct{}{}:
		defer func() { <-s.pictures }()
	case <-r.Context().Done():
		return r.Context().Err()
	}
	query := r.URL.Query()
	picture, err := s.Board.Picture(r.Context(), query.Get("story_id"), query.Get("path"))
	if err != nil {
		return err
	}
	return web.WritePicture(w, picture)
}

func (s *server) answer(w http.ResponseWriter, status int, d *board.Details, err error) error {
	if err != nil {
		return err
	}
	since, atLeast := sinceOf(&d.Story, d.Stage, s.Commits.Moves())
	story := wire.Story{
		Project: s.Name, StoryID: d.ID, StoryName: d.Name, Stage: &d.Stage, SinceMS: &since, SinceAtLeast: atLeast,
		Blocked: wire.OrNull(d.Blocked), MergeFailure: wire.OrNull(d.MergeFailure), Path: &d.Path, Version: &d.Version,
		FrontMatter: d.FrontMatter, Body: &d.Body, BodyCut: d.BodyCut,
		Writable: s.Board.Writable() && d.ReadOnly == "", Fault: wire.OrNull(d.Fault),
		Criteria: wire.OrNull(d.Criteria), Label: d.Label,
		DependsOn: wire.NewIDs(d.DependsOn), WaitsFor: wire.NewIDs(d.WaitsFor),
		Tasks: domain.Map(d.Tasks[:min(len(d.Tasks), domain.MaxTasks)], func(t board.Task) domain.Task { return t.Task }),
	}
	story.Merges = s.Board.MayMerge() == nil
	if d.Worktree != "" || d.Branch != "" { // it is elsewhere
		story.BaseStage = wire.OrNull(s.Board.StageIn("", d.ID))
	}
	if d.Blocked != "" {
		story.BlockedSinceMS = new(unixMS(d.BlockedSince))
	}
	if d.FrontMatterErr != nil {
		story.FrontMatterError = wire.OrNull(d.FrontMatterErr.Error())
	}
	story.Commits, story.Branch, story.Worktree = s.Commits.Commits(d.ID), s.branch(&d.Story), wire.OrNull(d.Worktree)
	if s.Work != nil {
		story.Work, _ = s.Work.Of(d.ID)
	}
	web.WriteJSON(w, status, story)
	return nil
}

func (s *server) changeStory(w http.ResponseWriter, r *http.Request) error {
	if !s.Board.Writable() {
		return board.ErrReadOnly
	}
	change, err := newChange(web.DecodeJSON(w, r, web.MaxBody))
	if err != nil {
		return err
	}
	id, _ := storyID(r)
	details, err := s.Board.Change(authorOf(r), id, change)
	return s.answer(w, http.StatusOK, details, err)
}

// changes answers with what a place of a story has beyond the base.
func (s *server) changes(w http.ResponseWriter, r *http.Request) error {
	id, _ := storyID(r)
	if s.Work == nil {
		return domain.Errorf(domain.NotFound, "there is no repository")
	}
	if err := s.Board.View().Err; err != nil {
		return board.Unavailable(err)
	}
	q := r.URL.Query()
	changes, err := s.Work.Changes(r.Context(), id, domain.ChangesQuery{
		Branch: q.Get("branch"), Worktree: q.Get("worktree"), Path: q.Get("path"), Since: q.Get("since"),
		Head: q.Get("head"),
	})
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusOK, changes)
	return nil
}

// merge merges a branch of a story, and answers with the commit once that is done.
func (s *server) merge(w http.ResponseWriter, r *http.Request) error {
	if err := s.Board.MayMerge(); err != nil {
		return err
	}
	body := web.DecodeJSON(w, r, web.MaxBody)
	id, _ := storyID(r)
	q := board.MergeRequest{
		Branch: body.Text("branch"), Head: body.Text("head"), Stage: body.OptionalText("stage"),
		Into: wire.Text(body.OptionalText("into")),
	}
	if err := body.Err(); err != nil {
		return err
	}
	commit, err := s.Board.Merge(authorOf(r), id, q)
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusOK, wire.Merged{Commit: commit})
	return nil
}

// authorOf returns the context of a change. The gateway names its author; nothing else depends on that name.
func authorOf(r *http.Request) context.Context {
	name, err := url.PathUnescape(r.Header.Get(domain.ByHeader))
	if err != nil || name == "" {
		return r.Context()
	}
	return domain.WithActor(r.Context(), &domain.Actor{Who: domain.Truncate(name, domain.MaxBy)})
}

func newChange(body *web.Body) (board.Change, error) {
	c := board.Change{
		Version: body.Text("version"), Stage: body.OptionalText("stage"), Blocked: body.OptionalText("blocked"),
		MergeFailure: body.OptionalText("merge_failure"), Worktree: body.OptionalText("worktree"),
	}
	if err := body.Err(); err != nil {
		return c, err
	}
	if _, given := body.Raw("blocked"); given {
		switch {
		case c.Blocked == nil: // null unblocks
			c.Blocked = new(string)
		case strings.TrimSpace(*c.Blocked) == "":
			return c, domain.Errorf(domain.Invalid, "blocked: must be a reason or null")
		}
	}
	if _, given := body.Raw("merge_failure"); given {
		switch {
		case c.MergeFailure == nil: // null clears it
			c.MergeFailure = new(string)
		case *c.MergeFailure == "":
			return c, domain.Errorf(domain.Invalid, "merge_failure: must not be empty")
		}
	}
	if raw, given := body.Raw("task"); given {
		var task struct {
			Path string
			Line *int
			Done *bool
		}
		if err := json.Unmarshal(raw, &task); err != nil || task.Line == nil || task.Done == nil {
			return c, domain.Errorf(domain.Invalid, "task: must be an object with line, a number, and done, true or false")
		}
		c.Task = &board.TaskChange{Path: task.Path, Line: *task.Line, Done: *task.Done}
	}
	return c, nil
}

func (s *server) createStory(w http.ResponseWriter, r *http.Request) error {
	if !s.Board.Writable() {
		return board.ErrReadOnly
	}
	body := web.DecodeJSON(w, r, web.MaxBody)
	name, text, stage := body.Text("name"), body.OptionalText("body"), body.OptionalText("stage")
	if err := body.Err(); err != nil {
		return err
	}
	if stage != nil && *stage == "" {
		return domain.Errorf(domain.Invalid, "stage: must not be empty")
	}
	details, err := s.Board.Create(authorOf(r), name, wire.Text(text), wire.Text(stage))
	return s.answer(w, http.StatusCreated, details, err)
}
