package upstream

import (
	"bytes"
	"context"
	"net/http"
	"net/url"

	"switchyard/internal/domain"
)

const (
	storiesPath = "/api/stories"
	// maxStoryID is the length of the longest id that a server is asked for, in bytes.
	maxStoryID = 4000
)

// Story asks a project server for a story. It returns the server's status and body as they are; the body is at most 8 MiB.
// An id that no server can have is 404. Errors are BadGateway with a message for people, or ctx's own: they mean that there
// is no answer, or only a redirect or a refusal of the token.
func (c *Client) Story(ctx context.Context, p domain.Project, id string) (status int, body []byte, err error) {
	return c.story(ctx, p, id, call{method: http.MethodGet})
}

// PatchStory sends a change of a story as it is. It returns what Story returns.
func (c *Client) PatchStory(ctx context.Context, p domain.Project, id string, change []byte) (status int, body []byte, err error) {
	return c.story(ctx, p, id, call{method: http.MethodPatch, body: change})
}

// CreateStory sends a new story as it is. It returns what Story returns.
func (c *Client) CreateStory(ctx context.Context, p domain.Project, story []byte) (status int, body []byte, err error) {
	return c.pass(ctx, p, call{method: http.MethodPost, path: storiesPath, body: story})
}

func (c *Client) story(ctx context.Context, p domain.Project, id string, call call) (int, []byte, error) {
	// Dots would lead to another path, escaped or not.
	if id == "" || id == "." || id == ".." || len(id) > maxStoryID {
		return http.StatusNotFound, []byte("story not found\n"), nil
	}
	call.path = storiesPath + "/" + url.PathEscape(id)
	return c.pass(ctx, p, call)
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
