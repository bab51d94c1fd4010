package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

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

const (
	storiesPath = "/api/stories"
	// maxStoryID is the longest id that a server is asked for, in bytes.
	maxStoryID = 4000
)

// Story requests a story. It returns NotFound if the server has none with this id or does not serve stories,
// BadGateway with a message for people for every other failure, or ctx's error.
func (c *Client) Story(ctx context.Context, p domain.Project, id string) (story domain.Story, err error) {
	path, ok := storyPath(id)
	if !ok {
		return story, domain.WrapError(domain.NotFound, errNotFound, "no project server has a story with this id")
	}
	err = c.do(ctx, p, call{path: path}, func(a answer) error {
		story, err = decodeStory(a, id)
		return err
	})
	notFound := errors.Is(err, errNotFound)
	if ctx.Err() == nil || err == nil {
		c.observe(p.Name, "story", unless(notFound, err))
	}
	if notFound {
		err = domain.WrapError(domain.NotFound, err, "the project server has no such story")
	}
	return story, err
}

func unless(condition bool, err error) error {
	if condition {
		return nil
	}
	return err
}

// PatchStory sends a change of a story unchanged, and returns the server's status and body unchanged; the body is at
// most 8 MiB. For an id that no server can have the status is 404. It returns BadGateway with a message for people, or
// ctx's error, when there is no answer, or only a redirect or a 401.
func (c *Client) PatchStory(
	ctx context.Context, p domain.Project, id string, change []byte,
) (status int, body []byte, err error) {
	path, ok := storyPath(id)
	if !ok {
		return http.StatusNotFound, []byte("story not found\n"), nil
	}
	return c.pass(ctx, p, call{method: http.MethodPatch, path: path, body: change})
}

// CreateStory sends a new story unchanged. Its results are those of PatchStory.
func (c *Client) CreateStory(ctx context.Context, p domain.Project, story []byte) (status int, body []byte, err error) {
	return c.pass(ctx, p, call{method: http.MethodPost, path: storiesPath, body: story})
}

// storyPath returns the path of a story, false for an id that cannot be part of a path.
func storyPath(id string) (string, bool) {
	if id == "" || id == "." || id == ".." || len(id) > maxStoryID { // dots change the path, even if escaped
		return "", false
	}
	return storiesPath + "/" + url.PathEscape(id), true
}

func (c *Client) pass(ctx context.Context, p domain.Project, call call) (status int, body []byte, err error) {
	call.any = true
	err = c.do(ctx, p, call, func(a answer) error {
		status, body = a.status, a.body
		return nil
	})
	if ctx.Err() == nil || err == nil {
		c.observe(p.Name, "story", err)
	}
	return status, body, err
}
