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
	// maxStoryID is the length of the longest id that a server is asked for, in bytes.
	maxStoryID = 4000
)

// Story asks a project server for a story. It returns NotFound where the server knows none of this id, or no stories at
// all, BadGateway with a message for people for every other failure, or ctx's own error.
func (c *Client) Story(ctx context.Context, p domain.Project, id string) (story domain.Story, err error) {
	path, ok := storyPath(id)
	if !ok {
		return story, domain.WrapError(domain.NotFound, errNotFound, "no project server has a story of this id")
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

// PatchStory sends a change of a story as it is, and returns the server's status and body as they are; the body is at most
// 8 MiB. An id that no server can have is 404. Errors are BadGateway with a message for people, or ctx's own: they mean that
// there is no answer, or only a redirect or a refusal of the token.
func (c *Client) PatchStory(ctx context.Context, p domain.Project, id string, change []byte) (status int, body []byte, err error) {
	path, ok := storyPath(id)
	if !ok {
		return http.StatusNotFound, []byte("story not found\n"), nil
	}
	return c.pass(ctx, p, call{method: http.MethodPatch, path: path, body: change})
}

// CreateStory sends a new story as it is. It returns what PatchStory returns.
func (c *Client) CreateStory(ctx context.Context, p domain.Project, story []byte) (status int, body []byte, err error) {
	return c.pass(ctx, p, call{method: http.MethodPost, path: storiesPath, body: story})
}

// storyPath returns the path of a story, false for an id that would lead to another one.
func storyPath(id string) (string, bool) {
	if id == "" || id == "." || id == ".." || len(id) > maxStoryID { // dots lead elsewhere, escaped or not
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
