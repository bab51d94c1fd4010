package upstream

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"

	"switchyard/internal/domain"
)

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
		status, body = a.status, bytes.Clone(a.body)
		return nil
	})
	if ctx.Err() == nil || err == nil {
		c.observe(p.Name, "story", err)
	}
	return status, body, err
}
