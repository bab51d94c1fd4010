package upstream

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"switchyard/internal/domain"
)

// errNoPipeline is the cause of the error for an answer that is not a pipeline.
var errNoPipeline = errors.New("not a pipeline")

// Pipeline requests a project server's pipeline. known is its last answer or nil, and is returned itself when
// nothing has changed since. A server with a feed, but without a valid pipeline, has events only. It returns
// BadGateway with a message for people, or ctx's error.
func (c *Client) Pipeline(
	ctx context.Context, p domain.Project, known *domain.PipelineAnswer,
) (*domain.PipelineAnswer, error) {
	result, err := c.pipeline(ctx, p, known)
	if (errors.Is(err, errNotFound) || errors.Is(err, errNoPipeline)) && c.servesFeed(ctx, p) {
		result, err = eventsOnly(known), nil
	}
	if ctx.Err() == nil || err == nil {
		c.observe(p.Name, "pipeline", err)
	}
	return result, err
}

func (c *Client) pipeline(
	ctx context.Context, p domain.Project, known *domain.PipelineAnswer,
) (*domain.PipelineAnswer, error) {
	// Our own project servers leave out items that would be cut anyway: a board of 60,000 stories would be too large.
	ask := call{path: "/api/pipeline", query: "items=" + strconv.Itoa(maxItems)}
	if known != nil {
		ask.etag = known.ETag
	}
	result := known
	err := c.do(ctx, p, ask, func(a answer) (err error) {
		if a.status == http.StatusOK {
			result, err = parsePipeline(a, known)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// eventsOnly returns the answer for a server without a pipeline, known itself if that is one.
func eventsOnly(known *domain.PipelineAnswer) *domain.PipelineAnswer {
	if known != nil && known.EventsOnly {
		return known
	}
	return &domain.PipelineAnswer{EventsOnly: true, Stages: []domain.Stage{}, Raw: []byte("[]")}
}
